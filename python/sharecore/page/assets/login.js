// Logs in with the broker's own credentials.

import { post } from "./api.js";
import { h, notice } from "./dom.js";

export function login(main, here, done) {
  const user = h("input", { id: "user", autocomplete: "username", required: true, autofocus: true, spellcheck: "false" });
  const password = h("input", { id: "password", type: "password", autocomplete: "current-password", required: true });
  const mechanism = h("select", { id: "mechanism" }, here.mechanisms.map((name) => h("option", { value: name }, name)));
  const said = h("div", {});
  const go = h("button", { type: "submit", class: "primary" }, "Log in");
  const open = location.protocol === "http:" && !["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
  main.append(h("form", {
    class: "login",
    onsubmit: async (event) => {
      event.preventDefault();
      go.disabled = true;
      said.replaceChildren();
      try {
        await post("login", { user: user.value, password: password.value, mechanism: mechanism.value });
        await done();
      } catch (error) {
        said.replaceChildren(notice(error.message, "error"));
        password.value = "";
        password.focus();
      }
      go.disabled = false;
    },
  },
  h("h1", {}, "Log in"),
  h("p", {}, "Log in as a user of the cluster. The cluster's ACLs decide what you can see and do."),
  open && notice("This page is not encrypted: others on the network can read the password."),
  h("label", { for: "user" }, "User"), user,
  h("label", { for: "password" }, "Password"), password,
  h("label", { for: "mechanism", hidden: here.mechanisms.length < 2 }, "Mechanism"),
  h("span", { hidden: here.mechanisms.length < 2 }, mechanism),
  said, go));
  user.focus();
}
