// Lag over time as a line.

import { clock, h, number, svg } from "./dom.js";

const WIDE = 600;
const HIGH = 120;

export class Chart {
  constructor() {
    this.points = [];
    this.line = svg("path", { class: "line", fill: "none" });
    this.area = svg("path", { class: "area" });
    this.picture = svg("svg", {
      viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", role: "img", class: "chart",
    }, this.area, this.line);
    this.top = h("span", { class: "top" });
    this.from = h("span", {});
    this.to = h("span", {});
    this.element = h("figure", { class: "lag" }, h("figcaption", {}, "Lag over time: ", this.top),
      this.picture, h("div", { class: "axis" }, this.from, this.to));
  }

  /** points: [seconds, lag], the newest last. */
  load(points) {
    this.points = points.concat(this.points.filter(([at]) => !points.length || at > points[points.length - 1][0]));
    this.draw();
  }

  add(at, lag) {
    const last = this.points[this.points.length - 1];
    if (last && at - last[0] < 1) return;
    this.points.push([at, lag]);
    if (this.points.length > 1800) this.points.shift();
    this.draw();
  }

  draw() {
    const { points } = this;
    if (!points.length) return;
    const [first, last] = [points[0][0], points[points.length - 1][0]];
    const most = Math.max(1, ...points.map(([, lag]) => lag));
    const x = (at) => (last > first ? ((at - first) / (last - first)) * WIDE : WIDE);
    const y = (lag) => HIGH - 4 - (lag / most) * (HIGH - 10);
    const path = points.map(([at, lag]) => `${x(at).toFixed(1)} ${y(lag).toFixed(1)}`).join("L");
    const begin = points.length === 1 ? `0 ${y(points[0][1]).toFixed(1)}L` : "";
    this.line.setAttribute("d", `M${begin}${path}`);
    this.area.setAttribute("d", `M${points.length === 1 ? 0 : x(first).toFixed(1)} ${HIGH}L${begin}${path}L${WIDE} ${HIGH}Z`);
    const now = points[points.length - 1][1];
    this.top.textContent = `at most ${number(most === 1 && now === 0 ? 0 : most)}, now ${number(now)}`;
    this.from.textContent = clock(first * 1000);
    this.to.textContent = clock(last * 1000);
    this.picture.setAttribute("aria-label",
      `lag from ${number(points[0][1])} to ${number(now)}, at most ${number(most)}, since ${this.from.textContent}`);
  }
}
