// When the directory was exported and checked, and what came of it.

import { ask } from "./ask.js";
import { fill, h, Table, tiles } from "./build.js";
import { bytes, count, moment, span } from "./show.js";

/** How long ago something was done. */
function ago(done) {
  return done ? `${span(Math.max(1, Math.round(Date.now() / 1000 - done.unix_s)))} ago` : "never";
}

export class Backups {
  static id = "backups";
  static title = "Backups";

  constructor() {
    this.warnings = h("div", { role: "status", hidden: true });
    this.said = null;
    this.figures = h("div");
    const text = (name, what) => ({ name, value: (row) => row[what] ?? "", show: (row) => row[what] ?? "–", kind: "text" });
    const n = (name, what, show) => ({ name, number: true, value: (row) => row[what] ?? 0, show: (row) => show(row[what]) });
    this.table = new Table("Imports, exports and checks", [
      { name: "when", value: (row) => row.unix_s, show: (row) => moment(row.unix_s * 1000) },
      text("what", "command"), text("verdict", "verdict"),
      n("entries", "entries", count), n("bytes", "bytes", bytes),
      { name: "took", number: true, value: (row) => row.seconds, show: (row) => `${row.seconds.toFixed(1)} s` },
      { name: "server", value: (row) => (row.served ? "served" : "stopped") },
      text("file", "file"), text("subtree", "base"), text("what was wrong", "why"),
    ], 0);
    this.element = h("div", { class: "stack" }, this.warnings, this.figures,
      h("div", { class: "panel" }, this.table.element),
      h("p", { class: "note" }, "keyway directory export and keyway directory check write down what they did, also beside a running server. An export is a backup only where it can be imported again: try it."));
  }

  async update(isMine) {
    const about = await ask(`backups?host=${this.host}`);
    if (!isMine()) return;
    const all = about.done ?? [];
    const warnings = about.warnings ?? [];
    // A text that is set again every second would be read out again every second.
    if (this.said !== warnings.join("\n")) {
      this.said = warnings.join("\n");
      this.warnings.hidden = warnings.length === 0;
      fill(this.warnings, ...warnings.map((warning) => h("p", { class: "bad" }, warning)));
    }
    const { export: last, check } = about;
    const ended = all.filter((done) => done.command === "import").at(-1);
    fill(this.figures, about.done ? tiles([
      ["last export", ago(last), last ? moment(last.unix_s * 1000) : "nothing was exported whole"],
      ["entries in it", count(last?.entries)], ["its size", bytes(last?.bytes)],
      ["last check", ago(check), check ? moment(check.unix_s * 1000) : "the store was not checked"],
      ["its verdict", check?.verdict ?? "–"],
      ["last import", ago(ended), ended ? moment(ended.unix_s * 1000) : "nothing was imported by command"],
    ]) : h("p", { class: "note" }, about.why ?? "Nothing is known of backups."));
    this.table.set(all, about.why ?? "Nothing was imported, exported or checked by command yet.");
  }
}
