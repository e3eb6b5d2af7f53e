// One group: its lag, its partitions with what is in flight, its members, its records.

import { follow, get } from "./api.js";
import { forgetTopic, pause, remove, reset, resume } from "./actions.js";
import { Chart } from "./chart.js";
import { chip, h, notice, number, rate, table } from "./dom.js";
import { state } from "./groups.js";
import { poison, records } from "./records.js";
import { STATES } from "./states.js";
import { Strip } from "./strip.js";

const PARTS = [["window", "In flight"], ["partitions", "Partitions"], ["members", "Members"], ["records", "Records"], ["poison", "Poison"]];
const SOURCES = {
  leader: "Records that members hold right now, with owners and locks, from this broker's share-partition leaders.",
  state: "Read from __share_group_state, which contains released and completed records. Kafka has no API for "
    + "lock owners and times; the page of a sharecore broker shows them.",
  none: "Share state cannot be read (it needs READ on __share_group_state) or does not exist yet: only start offsets and lag are known.",
};

export function group(main, here, name, values) {
  const part = PARTS.some(([key]) => key === values.get("part")) ? values.get("part") : "window";
  const wanted = { topic: values.get("topic") ?? "", first: Number(values.get("first")) || 0 };
  const said = h("div", {});
  const letterless = h("div", {});
  const figures = h("dl", { class: "figures" });
  const chart = new Chart();
  const body = h("div", { class: "part" });
  const acts = h("div", { class: "buttons" });
  const lives = { limit: 5, latest: null };
  const link = (changes) => {
    const next = new URLSearchParams({ part, ...changes });
    return `#/group/${encodeURIComponent(name)}?${next}`;
  };
  main.append(
    h("p", { class: "crumbs" }, h("a", { href: "#/" }, "Groups"), " / "),
    h("h1", {}, name), said, letterless, h("div", { class: "overview" }, figures, chart.element), acts,
    h("nav", { class: "parts", "aria-label": `Parts of ${name}` }, PARTS.map(([key, title]) =>
      h("a", { href: link({ part: key, ...(wanted.topic ? { topic: wanted.topic } : {}) }), "aria-current": key === part ? "page" : null }, title))),
    body);
  get("trail", { group: name }).then((found) => {
    chart.load(found.points);
    lives.limit = found.limit;
    lives.letters = found.letters;
    if (found.letters_trouble) {
      letterless.replaceChildren(notice(`Dead-letter records cannot be written: ${found.letters_trouble}`, "error"));
    }
  }).catch(() => {});

  const show = { window: windows, partitions, members }[part];
  const draw = show ? show(body, lives, link) : () => {};
  let begun = false;
  const end = follow("group", { group: name, ...wanted }, (look) => {
    said.replaceChildren(look.error || look.trouble ? notice(look.error || look.trouble, "error") : "",
      look.paused ? notice(`The group is ${look.paused}: delivery has stopped.`) : "",
      look.waits?.length ? notice(look.waits.join(" · ")) : "");
    if (!look.group) return;
    lives.latest = look;
    if (look.group.lag !== null) chart.add(look.at_ms / 1000, look.group.lag);
    facts(figures, look, lives);
    buttons(acts, here, name, look);
    draw(look);
    if (!begun && part === "records") records(body, name, look, values);
    if (!begun && part === "poison") poison(body, name);
    begun = true;
  }, (why) => said.replaceChildren(notice(why, "error")));
  return () => {
    end();
    draw.end?.();
  };
}

function facts(figures, look, lives) {
  const { group: it } = look;
  const shown = [
    ["State", state(it.state)], ["Lag", number(it.lag)], ["Settled/s", rate(it.settled)], ["New/s", rate(it.new)],
    ["Members", number(it.members)], ["Came back", number(it.came_back)], ["In flight", number(it.in_flight)],
    ["Delivery limit", number(lives.limit)], ["Assignor", look.assignor || "–"], ["Epoch", number(look.epoch)],
    lives.letters && ["Dead letters", h("a", { href: `#/letters?topic=${encodeURIComponent(lives.letters)}` }, lives.letters)],
  ].filter(Boolean);
  const focused = figures.contains(document.activeElement);
  figures.replaceChildren(...shown.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  if (focused) figures.querySelector("a")?.focus();
}

function buttons(acts, here, name, look) {
  if (!here.may_act) return;
  if (acts.childElementCount) {
    acts.querySelector("[data-pauses]").textContent = look.paused ? "Resume …" : "Pause …";
    return;
  }
  const refused = "not allowed by the ACLs of your user";
  const { read, delete: gone, alter_configs: alter } = look.operations;
  const pauses = h("button", { type: "button", "data-pauses": "", disabled: !alter, title: alter ? null : refused,
    onclick: () => (pauses.textContent.startsWith("Resume") ? resume(name) : pause(name)) }, look.paused ? "Resume …" : "Pause …");
  acts.append(
    pauses,
    h("button", { type: "button", disabled: !read, title: read ? null : refused, onclick: () => reset(name, look) }, "Reset offsets …"),
    h("button", { type: "button", disabled: !gone, title: gone ? null : refused, onclick: () => forgetTopic(name, look) }, "Forget a topic …"),
    h("button", { type: "button", class: "danger", disabled: !gone, title: gone ? null : refused, onclick: () => remove(name) }, "Delete group …"));
}

function topics(look, link) {
  return h("select", {
    id: "topic", onchange: (event) => { location.hash = link({ topic: event.target.value }); },
  }, look.topics.map((each) => h("option", { value: each, selected: each === look.topic }, each)));
}

function windows(body, lives, link) {
  const strips = new Map();
  const bar = h("div", { class: "bar" });
  const source = h("p", { class: "quiet" });
  const list = h("div", { class: "strips" }, h("p", { class: "wait" }, "looking …"));
  body.append(bar, legend(), source, list);
  const redraw = () => strips.forEach((each) => each.draw());
  addEventListener("resize", redraw);
  addEventListener("themed", redraw);
  const media = matchMedia("(prefers-color-scheme: dark)");
  media.addEventListener("change", redraw);
  let shape = "";

  function about(run, age) {
    if (!run.owner) return [];
    const member = lives.latest?.members.find((each) => each.id === run.owner);
    const lines = [member ? `held by ${member.client} at ${member.host}` : `held by member ${run.owner}`];
    if (member) lines.push(`member ${run.owner}`);
    if (run.left !== null) lines.push(`${(Math.max(0, run.left - age) / 1000).toFixed(1)} s left`);
    return lines;
  }

  const draw = (look) => {
    const now = JSON.stringify([look.topic, look.of_topic, look.windows.map((each) => each.partition)]);
    if (now !== shape) {
      shape = now;
      strips.clear();
      bar.replaceChildren(...pages(look, link));
      list.replaceChildren(...look.windows.map((window) => {
        const title = `${look.topic}-${window.partition}`;
        const strip = new Strip(title, about);
        strips.set(window.partition, strip);
        strip.counts = h("span", { class: "quiet" });
        strip.ends = h("div", { class: "axis" });
        return h("div", { class: "window" }, h("div", { class: "title" }, h("strong", {}, title), strip.counts), strip.element, strip.ends);
      }));
      if (!look.windows.length) list.replaceChildren(notice("the group has no state yet: no member has fetched records"));
    }
    const first = look.windows[0];
    source.textContent = first ? SOURCES[first.source] : "";
    for (const window of look.windows) {
      const strip = strips.get(window.partition);
      strip.show(window, lives.limit);
      strip.counts.textContent = counts(window);
      strip.ends.replaceChildren(h("span", {}, number(window.start)), h("span", {}, window.cut ? "more than is shown" : number(window.log_end)));
    }
  };
  draw.end = () => {
    removeEventListener("resize", redraw);
    removeEventListener("themed", redraw);
    media.removeEventListener("change", redraw);
  };
  return draw;
}

function counts(window) {
  const sums = new Map();
  for (const [first, last, id] of window.runs) sums.set(id, (sums.get(id) ?? 0) + last - first + 1);
  const parts = STATES.filter((each) => sums.has(each.id)).map((each) => `${number(sums.get(each.id))} ${each.name}`);
  const known = [...sums.values()].reduce((sum, one) => sum + one, 0);
  const fresh = window.log_end - window.start - known;
  return ` ${[...parts, fresh > 0 ? `${number(fresh)} new` : ""].filter(Boolean).join(", ") || "nothing waits"}`;
}

function pages(look, link) {
  const at = look.of_topic.indexOf(look.windows[0]?.partition ?? 0);
  const size = 16;
  const parts = [h("label", { for: "topic" }, "Topic "), topics(look, link)];
  if (look.of_topic.length > size) {
    const to = (from, text) => h("a", { href: link({ topic: look.topic, first: look.of_topic[Math.max(0, from)] }) }, text);
    parts.push(h("span", { class: "quiet" }, ` ${at + 1} to ${at + look.windows.length} of ${look.of_topic.length} partitions `),
      at > 0 && to(at - size, "‹ before"), " ", at + size < look.of_topic.length && to(at + size, "after ›"));
  }
  return parts.filter(Boolean);
}

function legend() {
  return h("ul", { class: "legend", "aria-label": "Colors" }, STATES.map((each) =>
    h("li", {}, h("span", { class: `swatch ${each.name}`, "aria-hidden": "true" }), h("strong", {}, each.name), ` ${each.said}`)),
  h("li", {}, h("span", { class: "swatch shades", "aria-hidden": "true" }), h("strong", {}, "stronger"), " delivered more often, up to the limit"));
}

function partitions(body) {
  return (look) => {
    const columns = [
      { name: "Partition", cell: (each) => `${each.topic}-${each.partition}` },
      { name: "Start offset", right: true, cell: (each) => number(each.start_offset) },
      { name: "Lag", right: true, cell: (each) => number(each.lag) },
      { name: "Settled/s", right: true, cell: (each) => rate(each.settled) },
      { name: "New/s", right: true, cell: (each) => rate(each.new) },
      { name: "In flight", right: true, cell: (each) => number(each.in_flight) },
      { name: "Oldest lease", right: true, cell: (each) => (each.oldest_s === null ? "–" : `${each.oldest_s.toFixed(1)} s`) },
    ];
    keep(body, table("Partitions", columns, look.partitions, { empty: "the group has no state yet" }),
      look.partitions_total > look.partitions.length ? notice(`the first ${number(look.partitions.length)} of ${number(look.partitions_total)}`) : "");
  };
}

function members(body) {
  return (look) => {
    const columns = [
      { name: "Client", cell: (each) => each.client || "–" },
      { name: "Host", cell: (each) => each.host },
      { name: "Member", cell: (each) => h("code", {}, each.id) },
      { name: "Epoch", right: true, cell: (each) => number(each.epoch) },
      { name: "Share partitions", cell: (each) => assignment(each.assignment) },
    ];
    keep(body, table("Members", columns, look.members, { empty: "no members" }),
      look.members_total > look.members.length ? notice(`the first ${number(look.members.length)} of ${number(look.members_total)}`) : "");
  };
}

function assignment(topics) {
  const parts = Object.entries(topics).map(([topic, numbers]) => `${topic}: ${numbers.join(", ")}`);
  return parts.length ? parts.join("; ") : chip("none");
}

/** Draws a table anew, and leaves the reader where he was. */
function keep(body, ...children) {
  const before = body.querySelector(".scroll");
  const [left, focused] = [before?.scrollLeft ?? 0, before !== null && before === document.activeElement];
  body.replaceChildren(...children);
  const after = body.querySelector(".scroll");
  after.scrollLeft = left;
  if (focused) after.focus();
}
