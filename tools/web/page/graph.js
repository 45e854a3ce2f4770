// A graph over time by uPlot, its legend with the latest figures, what they were below the pointer, and the
// same as a table.

import { h, fill } from "./build.js";

/* global uPlot */

const graphs = new Set();
const ROWS = 30;

/** Steps between the lines of a scale, so that what stands beside them is round as it is shown. */
const DECIMAL = [];
for (let power = -3; power < 15; power += 1) DECIMAL.push(...[1, 2, 5].map((digit) => Number(`${digit}e${power}`)));
const BINARY = Array.from({ length: 50 }, (_, power) => 2 ** power);
/** The lines of what is p50, p99 and max: they are told apart without their colours. */
export const DASHES = { p50: null, p99: [7, 4], max: [2, 3] };

function stroke(dash) {
  return dash ? (dash[0] > 4 ? "dashed" : "dotted") : "solid";
}

/** On a scale of powers of ten, whole powers; where it has few of them, twos and fives too. */
function powers(plot, splits) {
  const decades = Math.log10((plot.scales.y.max || 1) / (plot.scales.y.min || 1));
  const shown = decades > 2 ? [1] : [1, 2, 5];
  return splits.map((value) => {
    const digit = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
    return shown.some((one) => Math.abs(one - digit) < 1e-6) ? value : null;
  });
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Draws all anew: the colours have changed. */
export function recolour() {
  graphs.forEach((graph) => graph.make());
}

export class Graph {
  /**
   * `series` are `{ name, show, dash, colour }`; `x` is "clock" (seconds since 1970) or "seconds"; `log`
   * has a scale of powers of ten; `binary` one whose steps are powers of two.
   */
  constructor(title, series, { show, x = "clock", log = false, binary = false } = {}) {
    Object.assign(this, { title, series, show, x, log, binary });
    this.data = [[], ...series.map(() => [])];
    this.keys = series.map((one, at) => h("b", {}, "–"));
    const legend = series.map((one, at) => h("span", { class: "key" },
      h("i", { class: `l${one.colour ?? at + 1} ${stroke(one.dash)}${one.points ? " points" : ""}` }), `${one.name} `, this.keys[at]));
    this.hint = h("div", { class: "hint", hidden: true });
    this.place = h("div", { class: "plot", "aria-hidden": "true" }, this.hint);
    this.rows = h("tbody");
    const heads = [x === "clock" ? "time" : "second", ...series.map((one) => one.name)];
    const table = h("div", { class: "table", tabindex: "0", role: "region", "aria-label": title },
      h("table", {}, h("thead", {}, h("tr", {}, heads.map((name) => h("th", { scope: "col", class: "number" }, name)))),
        this.rows));
    this.element = h("figure", { "aria-label": title },
      h("figcaption", {}, h("h2", {}, title), legend), this.place, table);
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(this.place);
    graphs.add(this);
  }

  options() {
    const stroke = colour("--quiet");
    const grid = { stroke: colour("--grid"), width: 1 };
    const ticks = { ...grid, size: 4 };
    const font = "10px system-ui, 'DejaVu Sans', sans-serif";
    const series = this.series.map((one, at) => ({
      label: one.name, stroke: colour(`--c${one.colour ?? at + 1}`), width: 1.5,
      points: { show: Boolean(one.points), size: 5, space: 18 },
      dash: one.dash, spanGaps: false,
    }));
    const values = (plot, all) => all.map((value) => (value === null ? "" : this.show(value)));
    return {
      width: this.place.clientWidth, height: this.place.clientHeight,
      cursor: { y: false, drag: { x: false, y: false } }, legend: { show: false },
      scales: { x: { time: this.x === "clock" }, y: this.log ? { distr: 3 } : { range: fromZero } },
      axes: [
        { stroke, grid, ticks, font, size: 24, space: 60,
          values: this.x === "clock" ? [[60, "{HH}:{mm}", null, null, null, null, null, null, 1],
            [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1]] : undefined },
        { stroke, grid, ticks, font, size: 62, space: 20, values, incrs: this.binary ? BINARY : DECIMAL,
          ...(this.log ? { incrs: undefined, filter: powers } : {}) },
      ],
      hooks: { setCursor: [(plot) => this.point(plot)] },
      series: [{}, ...series],
    };
  }

  /** When a point is. */
  when(at) {
    const x = this.data[0][at];
    return this.x === "clock" ? new Date(x * 1000).toLocaleTimeString("en-GB", { hour12: false }) : `second ${x}`;
  }

  /** What the lines are below the pointer. */
  point(plot) {
    const { idx: at, left } = plot.cursor;
    this.hint.hidden = at === null || at === undefined || left < 0;
    if (this.hint.hidden) return;
    const text = (value) => (value === null || value === undefined ? "–" : this.show(value));
    fill(this.hint, h("b", {}, this.when(at)), this.series.map((one, series) => h("span", {},
      h("i", { class: `l${one.colour ?? series + 1} ${stroke(one.dash)}` }), `${one.name} ${text(this.data[series + 1][at])}`)));
    const start = plot.over.offsetLeft + left;
    const isLate = left > plot.over.clientWidth / 2;
    this.hint.style.left = isLate ? "auto" : `${start + 10}px`;
    this.hint.style.right = isLate ? `${this.place.clientWidth - start + 10}px` : "auto";
  }

  make() {
    this.plot?.destroy();
    this.plot = null;
    if (this.place.clientWidth > 0) this.plot = new uPlot(this.options(), this.data, this.place);
  }

  resize() {
    const [width, height] = [this.place.clientWidth, this.place.clientHeight];
    if (width === 0) return;
    if (!this.plot) this.make();
    else this.plot.setSize({ width, height });
  }

  /** The whole of the data: times, and a list for each series. Numbers that a log scale cannot show go. */
  set(data) {
    const shown = this.log ? data.map((list, at) => (at ? list.map((v) => (v > 0 ? v : null)) : list)) : data;
    this.data = shown;
    this.plot?.setData(shown);
    const last = data[0].length - 1;
    const text = (value) => (value === null || value === undefined ? "–" : this.show(value));
    this.keys.forEach((key, at) => { key.textContent = last < 0 ? "–" : text(data[at + 1][last]); });
    if (!document.documentElement.classList.contains("tables")) return;
    const rows = [];
    for (let at = last; at >= 0 && rows.length < ROWS; at -= 1) {
      rows.push(h("tr", {}, h("td", { class: "number" }, this.when(at)),
        this.series.map((one, series) => h("td", { class: "number" }, text(data[series + 1][at])))));
    }
    fill(this.rows, rows);
  }

  end() {
    this.watch.disconnect();
    this.plot?.destroy();
    graphs.delete(this);
  }
}

function fromZero(plot, least, greatest) {
  return [0, Number.isFinite(greatest) && greatest > 0 ? greatest * 1.08 : 1];
}
