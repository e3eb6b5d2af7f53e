// The delivery states: numbers, names, colors.

export const STATES = [
  { id: -1, name: "new", said: "not delivered yet, or no state was persisted" },
  { id: 0, name: "available", said: "returned, waits for redelivery" },
  { id: 1, name: "acquired", said: "held by a member" },
  { id: 2, name: "acknowledged", said: "accepted" },
  { id: 3, name: "archiving", said: "archived; its dead-letter record is being written" },
  { id: 4, name: "archived", said: "rejected, expired or at the delivery limit" },
];
const byId = new Map(STATES.map((state) => [state.id, state]));

export function stateOf(id) {
  return byId.get(id) ?? { id, name: `state ${id}`, said: "" };
}

/** How strongly a run is drawn: the nearer to the delivery limit, the stronger. */
export function strength(deliveries, limit) {
  const reach = Math.max(1, limit - 1);
  return 0.5 + 0.5 * Math.min(1, Math.max(0, deliveries - 1) / reach);
}

/** The colors of the theme in force. */
export function colors() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    states: new Map(STATES.map((state) => [state.id, of(state.name)])),
    base: of("strip"),
    cursor: of("ink"),
  };
}
