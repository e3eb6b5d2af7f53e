// Dead letters, with the records that they carry, and the way back.

import { get } from "./api.js";
import { redrive } from "./actions.js";
import { h, held, moment, notice, number, record, table } from "./dom.js";

export function letters(main, here, values) {
  const chosen = new Set();
  const topic = h("input", { id: "queue", list: "queues", value: values.get("topic") ?? "", spellcheck: "false" });
  const queues = h("datalist", { id: "queues" });
  const group = h("input", { id: "of-group", value: values.get("group") ?? "", spellcheck: "false" });
  const cause = h("select", { id: "cause" }, [["", "any"], ["rejected", "rejected"], ["exhausted", "exhausted"]]
    .map(([value, text]) => h("option", { value }, text)));
  const found = h("div", {}, h("p", { class: "wait" }, "looking …"));
  main.append(h("h1", {}, "Dead letters"),
    h("form", {
      class: "bar", onsubmit: (event) => {
        event.preventDefault();
        const next = new URLSearchParams({ topic: topic.value, group: group.value });
        history.replaceState(null, "", `#/letters?${next}`);
        load();
      },
    },
    h("label", { for: "queue" }, "Topic "), topic, queues, h("label", { for: "of-group" }, " Group "), group,
    h("label", { for: "cause" }, " Cause "), cause, h("button", { type: "submit", class: "primary" }, "Show")),
    found);

  const button = h("button", {
    type: "button", disabled: true,
    onclick: () => redrive(topic.value, [...chosen].map((each) => each.split("@").map(Number))),
  }, "Redrive …");
  const choose = (key, on) => {
    if (on) chosen.add(key);
    else chosen.delete(key);
    button.disabled = !chosen.size;
    button.textContent = chosen.size ? `Redrive ${chosen.size} …` : "Redrive …";
  };
  const columns = [
    here.may_act && {
      name: "Choose", cell: (each) => h("input", {
        type: "checkbox", "aria-label": `choose letter ${each.partition}@${each.offset}`,
        onchange: (event) => choose(`${each.partition}@${each.offset}`, event.target.checked),
      }),
    },
    { name: "Letter", cell: (each) => `${each.partition}@${each.offset}` },
    { name: "Written", cell: (each) => moment(each.time_ms) },
    { name: "Group", cell: (each) => h("a", { href: `#/group/${encodeURIComponent(each.group)}` }, each.group) },
    { name: "Record", cell: (each) => `${each.origin.topic}-${each.origin.partition}@${each.origin.offset}` },
    { name: "Cause", cell: (each) => each.cause },
    { name: "Delivered", right: true, cell: (each) => number(each.deliveries) },
    { name: "Key", cell: (each) => (each.copy ? held(each.key) : "–") },
    { name: "Value", cell: (each) => (each.copy ? record(each) : h("span", { class: "none" }, "not copied, only its position")) },
  ].filter(Boolean);

  async function load() {
    chosen.clear();
    choose("", false);
    if (!topic.value) return;
    found.replaceChildren(h("p", { class: "wait" }, "looking …"));
    try {
      const look = await get("letters", { topic: topic.value, group: group.value, cause: cause.value, most: 100 });
      found.replaceChildren(
        table(`Letters in ${topic.value}`, columns, look.letters, { empty: "no letters" }),
        look.complete ? "" : notice(`The newest ${look.letters.length} are shown; the topic has about ${number(look.total)}.`),
        here.may_act && look.letters.length ? h("div", { class: "buttons" }, button) : "");
    } catch (error) {
      found.replaceChildren(notice(error.message, "error"));
    }
  }

  get("letter-topics").then((known) => {
    queues.replaceChildren(...known.topics.map((name) => h("option", { value: name })));
    if (!topic.value && known.topics.length) topic.value = known.topics[0];
    if (!known.topics.length && !topic.value) found.replaceChildren(notice("No topic is enabled as a dead-letter topic (errors.deadletterqueue.group.enable)."));
    load();
  }).catch((error) => found.replaceChildren(notice(error.message, "error")));
}
