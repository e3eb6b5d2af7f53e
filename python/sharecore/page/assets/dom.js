// Elements without markup in strings: what a cluster says can never become HTML.

/** An element. `props`: attributes; `on...` are listeners, `data` a dataset, true and false set and leave out. */
export function h(name, props = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "data") Object.assign(made.dataset, value);
    else if (key === "value" || key === "checked" || key === "selected") made[key] = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(3).filter((each) => each !== null && each !== undefined && each !== false));
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

/** An element of SVG. */
export function svg(name, props = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(props)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const numbers = new Intl.NumberFormat("en-US");
const rates = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1, minimumFractionDigits: 1 });

/** A number as it is shown; a dash where it is not known. */
export function number(value) {
  return value === null || value === undefined ? "–" : numbers.format(value);
}

/** A rate a second. */
export function rate(value) {
  return value === null || value === undefined ? "–" : rates.format(value);
}

/** A moment in UTC, as the command line shows it. */
export function moment(ms) {
  return ms > 0 ? new Date(ms).toISOString() : "–";
}

/** The time of day in UTC. */
export function clock(ms) {
  return `${new Date(ms).toISOString().slice(11, 19)}Z`;
}

/** Announces a text to screen readers. */
export function announce(text) {
  document.getElementById("announced").textContent = text;
}

/** One of a few words. */
export function chip(text, kind = "") {
  return h("span", { class: `chip ${kind}` }, text);
}

/** A message in the page; `kind`: error, note. */
export function notice(text, kind = "note") {
  return h("p", { class: `notice ${kind}`, role: kind === "error" ? "alert" : null }, text);
}

/**
 * A table that is a list of cards where there is no room for it.
 * columns: [{name, key, cell: (row) => Node|string, right, sort}]
 */
export function table(caption, columns, rows, { sorted, onSort, empty = "nothing here" } = {}) {
  const head = columns.map((column) => {
    const active = sorted && sorted.key === column.key;
    const aria = onSort && column.sort !== false
      ? { "aria-sort": active ? (sorted.down ? "descending" : "ascending") : "none" } : {};
    const label = onSort && column.sort !== false
      ? h("button", { type: "button", class: "sort", onclick: () => onSort(column.key) }, column.name,
        h("span", { "aria-hidden": "true" }, active ? (sorted.down ? " ▼" : " ▲") : ""))
      : column.name;
    return h("th", { scope: "col", class: column.right ? "right" : null, ...aria }, label);
  });
  const body = rows.map((row) => h("tr", {}, columns.map((column, at) => {
    const cell = column.cell(row);
    return h(at === 0 ? "th" : "td", {
      scope: at === 0 ? "row" : null, class: column.right ? "right" : null, data: { label: column.name },
    }, cell);
  })));
  return h("div", { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" },
    h("table", { class: "cards" }, h("caption", { class: "unseen" }, caption), h("thead", {}, h("tr", {}, head)),
      h("tbody", {}, body.length ? body : h("tr", {}, h("td", { colspan: columns.length, class: "empty" }, empty)))));
}

/** What a record holds: text, cut where it is long; a dash for nothing. */
export function held(field) {
  if (!field) return h("span", { class: "none" }, "none");
  const more = field.cut ? ` … ${number(field.bytes)} bytes` : "";
  return h("code", {}, field.text === "" ? "(empty)" : field.text + more);
}

/** Key, value and headers of a record, the long parts folded. */
export function record(each) {
  const value = each.value;
  const long = value && (value.text.length > 80 || value.text.includes("\n"));
  const parts = [long
    ? h("details", {}, h("summary", {}, h("code", {}, value.text.slice(0, 80) + "…")), h("pre", {}, held(value)))
    : held(value)];
  if (each.headers.length) {
    parts.push(h("details", {}, h("summary", {}, each.headers.length === 1 ? "1 header" : `${each.headers.length} headers`),
      h("dl", { class: "headers" }, each.headers.map(([name, one]) => [h("dt", {}, name), h("dd", {}, held(one))]))));
  }
  return parts;
}
