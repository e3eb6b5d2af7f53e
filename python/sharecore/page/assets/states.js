// The delivery states: numbers, names, colours.

export const STATES = [
  { id: -1, name: "new", said: "never given back: it comes next, or nothing durable is known of it" },
  { id: 0, name: "available", said: "came back, and waits to be delivered again" },
  { id: 1, name: "acquired", said: "leased to a member" },
  { id: 2, name: "acknowledged", said: "accepted" },
  { id: 3, name: "archiving", said: "given up; its dead letter is being written" },
  { id: 4, name: "archived", said: "rejected, or given up" },
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

/** The colours of the theme in force. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    states: new Map(STATES.map((state) => [state.id, of(state.name)])),
    base: of("strip"),
    cursor: of("ink"),
  };
}
