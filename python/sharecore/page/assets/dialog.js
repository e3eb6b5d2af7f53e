// Asks before anything is done.

import { h, notice } from "./dom.js";

/**
 * A dialog; `fields` are shown in it, `act` is called with them confirmed and its errors are shown.
 * typed: a name that has to be typed before.
 */
export function confirm({ title, text, fields = [], verb, typed = null, danger = false, act }) {
  const said = h("div", {});
  const name = typed === null ? null : h("input", { id: "typed", autocomplete: "off", spellcheck: "false" });
  const go = h("button", { type: "submit", class: danger ? "danger" : "primary", disabled: typed !== null }, verb);
  name?.addEventListener("input", () => {
    go.disabled = name.value !== typed;
  });
  const dialog = h("dialog", { "aria-labelledby": "dialog-title" },
    h("form", {
      method: "dialog",
      onsubmit: async (event) => {
        event.preventDefault();
        go.disabled = true;
        try {
          const left = await act();
          if (left === false) go.disabled = false;
          else dialog.close();
        } catch (error) {
          said.replaceChildren(notice(error.message, "error"));
          go.disabled = false;
        }
      },
    },
    h("h2", { id: "dialog-title" }, title), h("p", {}, text), fields,
    name && h("p", {}, h("label", { for: "typed" }, "Type ", h("strong", {}, typed), " to confirm"), name),
    said,
    h("div", { class: "buttons" },
      h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), go)));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
