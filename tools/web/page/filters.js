// Filters by their shape: what they cost, and what index would help.

import { ask } from "./ask.js";
import { fill, h, Table } from "./build.js";
import { count, number, percent, time } from "./show.js";

/** Counters of one family, in rows: `prefix.{parts}.{what}`. */
export function rows(counts, prefix, parts) {
  const all = new Map();
  for (const [name, [ever, last]] of Object.entries(counts)) {
    if (!name.startsWith(prefix)) continue;
    const names = name.slice(prefix.length).split(".");
    if (names.length !== parts.length + 1) continue;
    const what = names.pop();
    const key = names.join(".");
    if (!all.has(key)) all.set(key, Object.fromEntries(parts.map((part, at) => [part, names[at]])));
    all.get(key)[what] = ever;
    all.get(key)[`${what}_last`] = last;
  }
  return [...all.values()];
}

export class Filters {
  static id = "filters";
  static title = "Filters";

  constructor() {
    const n = (name, what) => ({ name, number: true, value: (row) => row[what] ?? 0, show: (row) => count(row[what] ?? 0) });
    this.all = 1;
    this.shapes = new Table("Searches by the shape of their filter, since the start", [
      { name: "filter", value: (row) => row.filter, show: (row) => h("code", {}, row.filter), kind: "text" },
      { name: "scope", value: (row) => row.scope },
      { name: "searches/s", number: true, value: (row) => row.rate, show: (row) => number(row.rate) },
      n("searches", "searches"),
      { name: "of the time", number: true, value: (row) => row.time ?? 0, show: (row) => percent(row.time ?? 0, this.all) },
      { name: "each", number: true, value: (row) => row.each, show: (row) => time(row.each) },
      n("looked at", "candidates"), n("returned", "returned"),
      { name: "for one returned", number: true, value: (row) => row.waste, show: (row) => number(row.waste) },
      n("without index", "unindexed"),
      { name: "way", value: (row) => row.way, kind: "text" },
    ], 4);
    this.advice = new Table("Indexes that would help", [
      { name: "attribute", value: (row) => row.attribute },
      { name: "index", value: (row) => row.index, show: (row) => (row.index === "none" ? "no index can help" : row.index) },
      n("searches", "searches"), n("entries looked at", "entries"),
      { name: "of the search time", number: true, value: (row) => row.time ?? 0, show: (row) => percent(row.time ?? 0, this.all) },
      { name: "line below [indexes]", value: (row) => row.line ?? "", show: (row) => h("code", {}, row.line ?? "–"), kind: "text" },
    ], 4);
    this.note = h("p", { class: "note" });
    this.element = h("div", { class: "stack" }, h("div", { class: "panel" }, this.shapes.element),
      h("div", { class: "panel" }, this.advice.element), this.note);
  }

  async update(isMine) {
    const about = await ask(`filters?host=${this.host}`);
    if (!isMine()) return;
    const counts = about.counters?.counts ?? {};
    const seconds = about.counters?.seconds || 1;
    this.all = counts["search.time"]?.[0] || 1;
    const ways = new Map((about.ways ?? []).map((way) => [`${way.scope} ${way.filter}`, way.index ?? ""]));
    const shapes = rows(counts, "search.filter.", ["scope", "filter"]).map((row) => ({
      ...row, rate: row.searches_last / seconds, each: row.searches ? row.time / row.searches : 0,
      waste: row.returned ? row.candidates / row.returned : row.candidates, way: ways.get(`${row.scope} ${row.filter}`) ?? "",
    }));
    this.shapes.set(shapes, about.why ?? this.missing ?? "No search was made yet.");
    const lines = new Map((about.advice ?? []).map((one) => [`${one.attribute}.${one.index}`, one.line]));
    const lacking = rows(counts, "search.unindexed.", ["attribute", "index"])
      .filter((row) => row.searches > 0)
      .map((row) => ({ ...row, line: lines.get(`${row.attribute}.${row.index}`) }));
    this.advice.set(lacking, this.missing ?? "No search has lacked an index.");
    this.note.textContent = lacking.length
      ? "A line goes into keyway.toml, below [indexes]; keyway config set and keyway directory advise do and say the same." : "";
    fill(this.note, this.note.textContent);
  }
}
