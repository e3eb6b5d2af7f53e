// Looks at records by their state, and at those that are poisoned. Nothing is taken.

import { get } from "./api.js";
import { chip, h, held, moment, notice, number, record, table } from "./dom.js";
import { STATES } from "./states.js";

const COLUMNS = [
  { name: "Offset", right: true, cell: (each) => number(each.offset) },
  { name: "State", cell: (each) => chip(each.state, each.state) },
  { name: "Delivered", right: true, cell: (each) => number(each.deliveries) },
  { name: "Written", cell: (each) => moment(each.time_ms) },
  { name: "Key", cell: (each) => held(each.key) },
  { name: "Value", cell: (each) => record(each) },
];

export function records(body, name, look, values) {
  if (!look.topics.length) {
    body.append(notice("the group has no state yet: no member has fetched records"));
    return;
  }
  const topic = h("select", { id: "of-topic" }, look.topics.map((each) => h("option", { value: each, selected: each === look.topic }, each)));
  const partition = h("input", { id: "of-partition", type: "number", min: "0", value: values.get("partition") ?? "0", class: "short" });
  const first = h("input", { id: "of-first", type: "number", min: "0", placeholder: "start", class: "short" });
  const boxes = STATES.map((each) => h("label", { class: "box" },
    h("input", { type: "checkbox", value: each.name, checked: [-1, 0, 1].includes(each.id) }), each.name));
  const found = h("div", {});
  const show = async (from, before) => {
    const states = boxes.map((box) => box.firstChild).filter((box) => box.checked).map((box) => box.value);
    try {
      const page = await get("records", {
        group: name, topic: topic.value, partition: partition.value, states: states.join(","), first: from, most: 50,
      });
      const rows = before.concat(page.records);
      found.replaceChildren(
        page.source === "none" ? notice("Share state cannot be read, so all records look new.") : "",
        table("Records", COLUMNS, rows, { empty: page.next === null ? "no matching records" : "none in this range; there may be more" }),
        page.next === null ? h("p", { class: "quiet" }, "end of the log")
          : h("button", { type: "button", onclick: () => show(page.next, rows) }, `More, from offset ${number(page.next)}`));
    } catch (error) {
      found.replaceChildren(notice(error.message, "error"));
    }
  };
  body.append(h("form", {
    class: "bar", onsubmit: (event) => {
      event.preventDefault();
      show(first.value, []);
    },
  },
  h("label", { for: "of-topic" }, "Topic "), topic, h("label", { for: "of-partition" }, " Partition "), partition,
  h("label", { for: "of-first" }, " From offset "), first,
  h("fieldset", {}, h("legend", {}, "States"), boxes), h("button", { type: "submit", class: "primary" }, "Look")),
  h("p", { class: "quiet" }, "Records are read like a consumer without a group reads them: nothing is acquired, no delivery is counted."),
  found);
  show(first.value, []);
}

export async function poison(body, name) {
  const again = h("button", { type: "button", onclick: () => load() }, "Look again");
  const found = h("div", {}, h("p", { class: "wait" }, "looking …"));
  body.append(found, again);
  const columns = [
    { name: "Record", cell: (each) => `${each.topic}-${each.partition}@${each.first}${each.last > each.first ? `–${each.last}` : ""}` },
    { name: "Delivered", right: true, cell: (each) => number(each.deliveries) },
    { name: "Written", cell: (each) => (each.record?.time_ms ? moment(each.record.time_ms) : "–") },
    { name: "Key", cell: (each) => content(each, (one) => held(one.key)) },
    { name: "Value", cell: (each) => content(each, record) },
  ];
  async function load() {
    try {
      const look = await get("poison", { group: name });
      if (look.runs === null) {
        found.replaceChildren(notice("Share state cannot be read: it needs READ on __share_group_state."));
        return;
      }
      const limit = look.limit_known ? `The limit is ${look.limit}.` : `The limit cannot be read; Kafka's default is ${look.limit}.`;
      found.replaceChildren(
        h("p", {}, `Records returned ${look.least} times or more that wait for redelivery: ${number(look.total)}. ${limit}`),
        table("Poisoned records", columns, look.runs, { empty: "none" }),
        look.cut ? notice("Only those returned most often are shown.") : "");
    } catch (error) {
      found.replaceChildren(notice(error.message, "error"));
    }
  }
  await load();
}

function content(each, show) {
  if (!each.record) return h("span", { class: "none" }, "not read");
  return each.record.error ? chip(each.record.error, "bad") : show(each.record);
}
