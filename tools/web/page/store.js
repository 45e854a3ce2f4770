// The store: how large, how full, how it grows, and what commits cost.

import { ask } from "./ask.js";
import { fill, h, tiles } from "./build.js";
import { DASHES, Graph } from "./graph.js";
import { Past } from "./now.js";
import { bytes, count, number, percent, span, time } from "./show.js";

/** Growth over less than this says nothing. */
const GROWTH_S_MIN = 20;

export class Store {
  static id = "store";
  static title = "Store";

  constructor() {
    this.past = new Past();
    this.figures = h("div");
    const gauge = (name) => (point) => point.now[name] ?? null;
    const named = (...names) => names.map((name) => ({ name, dash: DASHES[name] }));
    const figures = ["p50", "p99", "max"];
    this.graphs = [
      [new Graph("The data file", named("size", "in use"), { show: bytes, binary: true }), [gauge("store.bytes"), gauge("store.used")]],
      [new Graph("Entries", named("entries"), { show: count }), [gauge("store.entries")]],
      [new Graph("Commits: how long one takes", named(...figures), { show: time, log: true }),
        figures.map((what) => (point) => point.times["store.sync"]?.[what] ?? null)],
      [new Graph("Commits: changes in one", named(...figures), { show: number }),
        figures.map((what) => (point) => point.times["store.group"]?.[what] ?? null)],
      [new Graph("Changes that wait for a commit", named("changes"), { show: number }), [gauge("store.waiting")]],
      [new Graph("Readers of older states", [{ name: "readers" }, { name: "commits behind" }], { show: number }),
        [gauge("store.readers"), gauge("store.reader_lag")]],
    ];
    this.element = h("div", { class: "stack" }, this.figures,
      h("div", { class: "graphs" }, this.graphs.map(([graph]) => graph.element)));
  }

  /** Bytes a second that are put into use, over what is seen. */
  growth() {
    const known = this.past.points.filter((point) => point.now["store.used"] !== undefined);
    const [first, last] = [known[0], known.at(-1)];
    const seconds = first && last ? (last.unix_ms - first.unix_ms) / 1000 : 0;
    return seconds < GROWTH_S_MIN ? null : (last.now["store.used"] - first.now["store.used"]) / seconds;
  }

  async update(isMine) {
    const [about] = await Promise.all([ask(`store?host=${this.host}`), this.past.update(this.host, isMine)]);
    if (!isMine()) return;
    this.graphs.forEach(([graph, readings]) => graph.set(this.past.data(readings)));
    const counters = about.counters;
    if (counters?.now["store.bytes"] === undefined) {
      fill(this.figures, h("p", { class: "note" }, about.why ?? this.missing ?? "Nothing is known of the store."));
      return;
    }
    const now = (name) => counters.now[`store.${name}`];
    const ever = (name) => (counters.counts[`store.${name}`] ?? [0])[0];
    const [size, used, most] = [now("bytes"), now("used"), now("bytes_max")];
    const growth = this.growth();
    const sync = counters.times["store.sync"]?.since_start;
    const full = growth > 0 && most ? span((most - used) / growth) : growth === null ? "–" : "not growing";
    fill(this.figures, tiles([
      ["entries", count(now("entries"))], ["file", bytes(size)], ["in use", bytes(used)], ["free in it", bytes(size - used)],
      ["may grow to", bytes(most)], ["in use of that", percent(used, most)],
      ["growth", growth === null ? "–" : `${bytes(growth)}/s`, "of what is in use, over the minutes that this page has"],
      ["full in", full, "if it grows on like that"],
      ["readers", count(now("readers"))], ["oldest reader", `${count(now("reader_lag"))} commits`, "how far behind it is"],
      ["commits", count(ever("commits"))], ["changes", count(ever("changes"))],
      ["sync p99", time(sync?.p99), "since the start"], ["sync errors", count(ever("sync_errors"))],
    ]));
  }

  end() {
    this.graphs.forEach(([graph]) => graph.end());
  }
}
