// The in-flight window of a share partition as a strip, with a cursor for mouse and keys.

import { h, number } from "./dom.js";
import { colors, stateOf, strength } from "./states.js";

const TAIL = 0.12; // of the width, for what lies behind the window
const HEIGHT = 34;

/** Runs over the whole window: offsets that no run names are new ones. */
function whole(window) {
  const runs = [];
  let at = window.start;
  for (const [first, last, state, deliveries, owner, left] of window.runs) {
    if (last < at) continue;
    if (first > at) runs.push({ first: at, last: first - 1, state: -1, deliveries: 0 });
    runs.push({ first: Math.max(first, at), last, state, deliveries, owner, left });
    at = last + 1;
  }
  return { runs, behind: Math.max(0, window.log_end - at), next: at };
}

export class Strip {
  /** tip: shown where the cursor is; `about(run)`: lines about a run. */
  constructor(name, about) {
    this.about = about;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.tip = h("div", { class: "tip", hidden: true });
    this.element = h("div", {
      class: "strip", tabindex: "0", role: "slider", "aria-label": `records in flight of ${name}`,
      onmousemove: (event) => this.point(event), onmouseleave: () => this.select(-1),
      ontouchstart: (event) => this.point(event.touches[0]),
      onkeydown: (event) => this.key(event), onfocus: () => this.select(Math.max(0, this.at)),
      onblur: () => this.select(-1),
    }, this.canvas, this.tip);
    this.at = -1;
    this.parts = [];
  }

  show(window, limit) {
    this.window = window;
    this.limit = limit;
    this.received = Date.now();
    const { runs, behind, next } = whole(window);
    const width = runs.length && behind ? 1 - TAIL : 1;
    const size = runs.length ? runs[runs.length - 1].last - window.start + 1 : 1;
    this.parts = runs.map((run) => ({
      ...run, from: ((run.first - window.start) / size) * width, to: ((run.last + 1 - window.start) / size) * width,
    }));
    if (behind) {
      this.parts.push({
        first: next, last: next + behind - 1, state: -1, deliveries: 0, tail: true, from: runs.length ? width : 0, to: 1,
      });
    }
    if (this.at >= this.parts.length) this.at = this.parts.length - 1;
    this.draw();
    this.say();
  }

  draw() {
    const wide = this.element.clientWidth;
    if (!wide) return;
    const ratio = globalThis.devicePixelRatio || 1;
    const { canvas } = this;
    canvas.width = Math.round(wide * ratio);
    canvas.height = Math.round(HEIGHT * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const theme = colors();
    pen.fillStyle = theme.base;
    pen.fillRect(0, 0, wide, HEIGHT);
    for (const part of this.parts) {
      const from = part.from * wide;
      const width = Math.max(1, (part.to - part.from) * wide);
      pen.globalAlpha = part.state < 0 ? 1 : strength(part.deliveries, this.limit);
      pen.fillStyle = theme.states.get(part.state) ?? theme.cursor;
      pen.fillRect(from, 0, width > 3 ? width - 1 : width, HEIGHT);
      pen.globalAlpha = 1;
      if (part.tail) hatch(pen, from, width, theme.cursor);
    }
    const chosen = this.parts[this.at];
    if (chosen) {
      pen.strokeStyle = theme.cursor;
      pen.lineWidth = 2;
      pen.strokeRect(chosen.from * wide + 1, 1, Math.max(3, (chosen.to - chosen.from) * wide) - 2, HEIGHT - 2);
    }
  }

  point(event) {
    const box = this.element.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    const at = this.parts.findIndex((part) => share < part.to);
    this.select(at < 0 ? this.parts.length - 1 : at);
  }

  key(event) {
    const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
    const last = this.parts.length - 1;
    if (event.key in steps) this.select(Math.min(last, Math.max(0, this.at + steps[event.key])));
    else if (event.key === "Home") this.select(0);
    else if (event.key === "End") this.select(last);
    else return;
    event.preventDefault();
  }

  select(at) {
    this.at = Math.min(at, this.parts.length - 1);
    this.draw();
    this.say();
  }

  say() {
    const part = this.parts[Math.max(0, this.at)];
    const { element, tip } = this;
    element.setAttribute("aria-valuemin", this.window.start);
    element.setAttribute("aria-valuemax", Math.max(this.window.start, this.window.log_end - 1));
    element.setAttribute("aria-valuenow", part ? part.first : this.window.start);
    const lines = part ? this.lines(part) : ["nothing in flight, nothing new"];
    element.setAttribute("aria-valuetext", lines.join(", "));
    tip.hidden = this.at < 0 || !part;
    if (tip.hidden) return;
    tip.replaceChildren(...lines.map((line, number) => h(number ? "div" : "strong", {}, line)));
    const middle = ((part.from + part.to) / 2) * element.clientWidth;
    const room = element.clientWidth - tip.offsetWidth;
    tip.style.left = `${Math.max(0, Math.min(room, middle - tip.offsetWidth / 2))}px`;
  }

  lines(part) {
    const count = part.last - part.first + 1;
    const where = count === 1 ? `offset ${number(part.first)}`
      : `offsets ${number(part.first)} to ${number(part.last)}, ${number(count)} records`;
    const state = stateOf(part.state);
    const lines = [where, `${state.name}: ${state.said}`];
    if (part.deliveries) lines.push(`delivered ${part.deliveries} of ${this.limit} times`);
    return lines.concat(this.about(part, Date.now() - this.received));
  }
}

function hatch(pen, from, width, color) {
  pen.save();
  pen.beginPath();
  pen.rect(from, 0, width, HEIGHT);
  pen.clip();
  pen.strokeStyle = color;
  pen.globalAlpha = 0.25;
  for (let x = from - HEIGHT; x < from + width; x += 7) {
    pen.beginPath();
    pen.moveTo(x, HEIGHT);
    pen.lineTo(x + HEIGHT, 0);
    pen.stroke();
  }
  pen.restore();
}
