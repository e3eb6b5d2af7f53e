// Talks to the server: requests, and streams of looks.

export class Failed extends Error {
  constructor(status, text, code) {
    super(text);
    this.status = status;
    this.code = code;
  }
}

let csrf = "";
let ended = () => {};

/** Called when the server says that nobody is logged in. */
export function onEnded(callback) {
  ended = callback;
}

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Failed(0, "the page's server does not respond");
  }
  const body = await answer.json().catch(() => ({ error: `status ${answer.status}` }));
  if (!answer.ok) {
    if (answer.status === 401 && path !== "/api/login") ended();
    throw new Failed(answer.status, body.error, body.code);
  }
  return body;
}

function query(values) {
  return new URLSearchParams(Object.entries(values).filter(([, value]) => value !== "" && value !== null)).toString();
}

/** Who is here, and what the page may do. */
export async function session() {
  const found = await ask("/api/session");
  csrf = found.csrf ?? "";
  return found;
}

export function get(name, values = {}) {
  return ask(`/api/${name}?${query(values)}`);
}

export function post(name, body) {
  return ask(`/api/${name}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-csrf-token": csrf },
    body: JSON.stringify(body),
  });
}

/** Follows a view; returns what ends it. `look` is called with each look, `lost` with why there is none. */
export function follow(name, values, look, lost) {
  const source = new EventSource(`/api/${name}?${query(values)}`);
  source.addEventListener("look", (event) => look(JSON.parse(event.data)));
  source.addEventListener("ended", () => {
    source.close();
    ended();
  });
  source.addEventListener("error", async () => {
    lost("the page's server does not respond; retrying");
    if (source.readyState === EventSource.CLOSED) {
      // it was refused, and a browser does not report why
      await session().then((found) => {
        if (!found.in) ended();
        else lost("the server allows no more open pages; close some and reload this one");
      }).catch(() => {});
    }
  });
  return () => source.close();
}
