// What changes something: asked before, done with the rights of the user, announced afterwards.

import { post } from "./api.js";
import { confirm } from "./dialog.js";
import { h, notice, number, table, announce } from "./dom.js";

const COLUMNS = [
  { name: "Partition", cell: (each) => `${each.topic}-${each.partition}` },
  { name: "From", right: true, cell: (each) => number(each.before) },
  { name: "To", right: true, cell: (each) => number(each.after) },
];

export function reset(name, look) {
  const topic = h("select", { id: "reset-topic" }, h("option", { value: "" }, "all topics"),
    look.topics.map((each) => h("option", { value: each }, each)));
  const to = h("select", { id: "reset-to" },
    [["earliest", "the first record"], ["latest", "the end of the log"], ["offset", "an offset"], ["time", "a time"]]
      .map(([value, text]) => h("option", { value }, text)));
  const value = h("input", { id: "reset-value", hidden: true, "aria-label": "offset, or time in UTC" });
  const zone = h("span", { hidden: true }, " UTC");
  const planned = h("div", {});
  let plan = "";
  const ask = () => JSON.stringify([topic.value, to.value, value.value]);
  const changed = () => {
    value.hidden = !["offset", "time"].includes(to.value);
    value.type = to.value === "time" ? "datetime-local" : "number";
    zone.hidden = to.value !== "time";
    if (to.value === "offset") value.min = "0";
    plan = "";
    planned.replaceChildren();
  };
  to.addEventListener("change", changed);
  topic.addEventListener("change", changed);
  value.addEventListener("input", () => { plan = ""; });
  const dialog = confirm({
    title: `Reset ${name}`,
    text: "The group must have no members. Records from the new offsets on are delivered again, also those already acknowledged.",
    fields: [h("p", {}, h("label", { for: "reset-topic" }, "Topic "), topic), h("p", {}, h("label", { for: "reset-to" }, "To "), to, " ", value, zone), planned],
    verb: "Plan, then reset",
    danger: true,
    act: async () => {
      const body = { group: name, topic: topic.value, to: to.value, value: value.value };
      const go = dialog.querySelector("button[type=submit]");
      if (plan !== ask()) {
        const found = await post("reset", body);
        planned.replaceChildren(table("Planned reset", COLUMNS, found.plan, { empty: "nothing would change" }));
        plan = ask();
        go.textContent = "Reset";
        return false;
      }
      const done = await post("reset", { ...body, confirm: name });
      if (done.failed.length) throw new Error(`${done.failed.length} partitions were not reset: ${done.failed[0].error}`);
      finish(`${number(done.done.length)} partitions of ${name} are reset`);
      return true;
    },
  });
}

export function pause(name) {
  const minutes = h("input", { id: "pause-minutes", type: "number", min: "1", placeholder: "until it is resumed" });
  confirm({
    title: `Pause ${name}`,
    text: "Delivery to the group is paused. Members may still acknowledge the records they hold.",
    fields: [h("p", {}, h("label", { for: "pause-minutes" }, "For minutes "), minutes)],
    verb: "Pause",
    act: async () => {
      await post("pause", { group: name, minutes: minutes.value ? Number(minutes.value) : null, confirm: name });
      finish(`${name} is paused`);
    },
  });
}

export function resume(name) {
  confirm({
    title: `Resume ${name}`,
    text: "Delivery to the group resumes.",
    verb: "Resume",
    act: async () => {
      await post("resume", { group: name, confirm: name });
      finish(`${name} gets records again`);
    },
  });
}

export function forgetTopic(name, look) {
  const topic = h("select", { id: "forget-topic" }, look.topics.map((each) => h("option", { value: each }, each)));
  confirm({
    title: `Forget a topic of ${name}`,
    text: "The offsets and the state of the group in the topic are deleted. The group must have no members.",
    fields: [h("p", {}, h("label", { for: "forget-topic" }, "Topic "), topic)],
    verb: "Forget", typed: name, danger: true,
    act: async () => {
      await post("delete-offsets", { group: name, topic: topic.value, confirm: name });
      finish(`${name} has forgotten ${topic.value}`);
    },
  });
}

export function remove(name) {
  confirm({
    title: `Delete ${name}`,
    text: "The group is deleted with all its offsets and state. It must have no members.",
    verb: "Delete", typed: name, danger: true,
    act: async () => {
      await post("delete-group", { group: name, confirm: name });
      location.hash = "#/";
      finish(`${name} is deleted`);
    },
  });
}

export function redrive(topic, letters) {
  const to = h("input", { id: "redrive-to", placeholder: "where each record came from", spellcheck: "false" });
  confirm({
    title: `Redrive ${letters.length} of ${topic}`,
    text: "The original records are produced again, each at least once, with headers that name their origin. The dead-letter records stay in their topic.",
    fields: [h("p", {}, h("label", { for: "redrive-to" }, "To topic "), to)],
    verb: "Redrive",
    act: async () => {
      const done = await post("redrive", { topic, letters, to: to.value, confirm: topic });
      const parts = Object.entries(done.moved).map(([name, count]) => `${number(count)} produced to ${name}`);
      if (done.gone) parts.push(`${number(done.gone)} are no longer in their topic`);
      finish(parts.join(", "));
    },
  });
}

function finish(text) {
  announce(text);
  const shown = notice(text, "good");
  document.getElementById("main").prepend(shown);
  setTimeout(() => shown.remove(), 10000);
}
