// All groups: which lag, how fast they move.

import { follow } from "./api.js";
import { chip, h, notice, number, rate, table } from "./dom.js";

const COLUMNS = [
  { name: "Group", key: "group_id", cell: (each) => h("a", { href: `#/group/${encodeURIComponent(each.group_id)}` }, each.group_id) },
  { name: "State", key: "state", cell: (each) => state(each.state) },
  { name: "Members", key: "members", right: true, cell: (each) => number(each.members) },
  { name: "Partitions", key: "partitions", right: true, cell: (each) => number(each.partitions) },
  { name: "Lag", key: "lag", right: true, cell: (each) => number(each.lag) },
  { name: "Settled/s", key: "settled", right: true, cell: (each) => rate(each.settled) },
  { name: "New/s", key: "new", right: true, cell: (each) => rate(each.new) },
  { name: "Came back", key: "came_back", right: true, cell: (each) => number(each.came_back) },
  { name: "In flight", key: "in_flight", right: true, cell: (each) => number(each.in_flight) },
];

/** A group's state, or why it is unknown. */
export function state(text) {
  const kinds = { Stable: "good", Empty: "", Dead: "bad" };
  return chip(text, text in kinds ? kinds[text] : "bad");
}

export function groups(main, here, values) {
  let wanted = values.get("filter") ?? "";
  let sorted = { key: "lag", down: true };
  let look = null;
  let end = () => {};
  const filter = h("input", {
    type: "search", id: "filter", value: wanted, "aria-keyshortcuts": "/", spellcheck: "false",
    oninput: () => {
      wanted = filter.value;
      history.replaceState(null, "", wanted ? `#/?filter=${encodeURIComponent(wanted)}` : "#/");
      clearTimeout(timer);
      timer = setTimeout(begin, 250);
    },
  });
  let timer = 0;
  const said = h("div", {});
  const list = h("div", {}, h("p", { class: "wait" }, "looking …"));
  main.append(h("h1", {}, "Share groups"),
    h("p", { class: "bar" }, h("label", { for: "filter" }, "Name contains "), filter, said), list);

  function draw() {
    if (!look || look.error) return;
    const rows = [...look.groups].sort((a, b) => compare(a[sorted.key], b[sorted.key]) * (sorted.down ? -1 : 1));
    const focused = document.activeElement;
    const name = focused?.closest?.("tbody") ? focused.textContent : null;
    const onSort = focused?.classList?.contains("sort") ? focused.textContent.replace(/ [▲▼]$/, "") : null;
    list.replaceChildren(table("Share groups", COLUMNS.filter((column) => known(column, look)), rows, {
      sorted, empty: wanted ? "no matching group" : "there are no share groups yet",
      onSort: (key) => {
        sorted = { key, down: sorted.key === key ? !sorted.down : key !== "group_id" };
        draw();
      },
    }), look.matching > rows.length ? notice(`${number(rows.length)} of ${number(look.matching)} are shown: those that lag most`) : "");
    // what had the focus was drawn anew
    if (name) [...list.querySelectorAll("tbody a")].find((each) => each.textContent === name)?.focus();
    if (onSort) [...list.querySelectorAll(".sort")].find((each) => each.textContent.startsWith(onSort))?.focus();
  }

  function begin() {
    end();
    end = follow("groups", { filter: wanted }, (next) => {
      look = next;
      said.replaceChildren(next.trouble || next.error
        ? notice(next.error || next.trouble, "error")
        : h("span", { class: "quiet" }, ` ${number(next.matching)} of ${number(next.total)} groups`));
      draw();
    }, (why) => said.replaceChildren(notice(why, "error")));
  }

  begin();
  return () => {
    clearTimeout(timer);
    end();
  };
}

function known(column, look) {
  if (column.key === "came_back") return look.came_back_known;
  return column.key !== "in_flight" || look.in_flight_known;
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  return a < b ? -1 : 1;
}
