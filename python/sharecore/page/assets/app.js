// Which view is shown, who is here, which keys do what.

import { onEnded, post, session } from "./api.js";
import { h, notice, announce } from "./dom.js";
import { groups } from "./groups.js";
import { group } from "./group.js";
import { letters } from "./letters.js";
import { login } from "./login.js";

const main = document.getElementById("main");
const head = document.getElementById("head");
const THEMES = ["auto", "light", "dark"];
let here = null; // the session
let leave = () => {}; // ends the view that is shown

/** The address behind #: path and parameters. */
function place() {
  const [path, search = ""] = location.hash.slice(1).split("?");
  return { path: path.split("/").filter(Boolean).map(decodeURIComponent), values: new URLSearchParams(search) };
}

function show() {
  leave();
  leave = () => {};
  const { path, values } = place();
  main.replaceChildren();
  if (!here.in) leave = login(main, here, start) ?? leave;
  else if (path[0] === "group" && path[1]) leave = group(main, here, path[1], values) ?? leave;
  else if (path[0] === "letters") leave = letters(main, here, values) ?? leave;
  else leave = groups(main, here, values) ?? leave;
  header(path[0] ?? "groups");
  const title = main.querySelector("h1")?.textContent ?? "sharecore";
  document.title = `${title} · sharecore`;
  announce(title);
}

function header(part) {
  const links = [["#/", "Groups", part === "groups" || part === "group"], ["#/letters", "Dead letters", part === "letters"]];
  const troubles = here.in ? here.troubles : [];
  head.replaceChildren(
    h("a", { class: "brand", href: "#/" }, "sharecore"),
    h("span", { class: "about" }, here.about),
    // replaceChildren would show the word false
    ...(here.in ? [h("nav", { "aria-label": "Main" }, links.map(([href, name, on]) =>
      h("a", { href, "aria-current": on ? "page" : null }, name)))] : []),
    h("span", { class: "end" },
      here.in && !here.may_act && h("span", { class: "chip" }, "read-only"),
      here.in && here.user && h("span", { class: "user" }, here.user),
      here.in && here.user && h("button", { type: "button", onclick: out }, "Log out"),
      h("button", { type: "button", onclick: theme, id: "theme" }, `Theme: ${chosen()}`),
      h("button", { type: "button", onclick: keys, "aria-keyshortcuts": "?" }, "Keys")),
    ...troubles.map((text) => notice(text, "error")),
  );
}

function chosen() {
  return THEMES.includes(localStorage.getItem("theme")) ? localStorage.getItem("theme") : "auto";
}

function theme() {
  const next = THEMES[(THEMES.indexOf(chosen()) + 1) % THEMES.length];
  localStorage.setItem("theme", next);
  apply();
  document.getElementById("theme").textContent = `Theme: ${next}`;
}

function apply() {
  if (chosen() === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen();
  dispatchEvent(new Event("themed"));
}

async function out() {
  await post("logout", {}).catch(() => {});
  await start();
}

const KEYS = [
  ["/", "filter or first field"], ["g", "groups"], ["l", "dead letters"], ["j, k", "next and previous row of a table"],
  ["Enter", "open"], ["Esc", "back to all groups"], ["← →", "along a strip; Home and End to its ends"], ["?", "these keys"],
];

function keys() {
  const dialog = h("dialog", { "aria-labelledby": "keys-title" },
    h("h2", { id: "keys-title" }, "Keys"),
    h("dl", { class: "keys" }, KEYS.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
    h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => dialog.close() }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function step(by) {
  const links = [...main.querySelectorAll("tbody th a")];
  if (!links.length) return;
  const at = links.indexOf(document.activeElement);
  links[Math.min(links.length - 1, Math.max(0, at < 0 ? 0 : at + by))].focus();
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const typing = event.target.closest?.("input, select, textarea");
  if (event.key === "Escape") {
    if (typing) event.target.blur();
    else if (here?.in) location.hash = "#/";
    return;
  }
  if (typing) return;
  const act = {
    "/": () => main.querySelector("input, select")?.focus(), "?": keys, j: () => step(1), k: () => step(-1),
    g: () => { location.hash = "#/"; }, l: () => { location.hash = "#/letters"; },
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

async function start() {
  try {
    here = await session();
  } catch (error) {
    main.replaceChildren(notice(error.message, "error"));
    return;
  }
  show();
}

onEnded(start);
addEventListener("hashchange", () => here && show());
apply();
await start();
