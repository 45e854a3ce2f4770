// The slowest operations of the last minutes, and what their time went to.

import { ask } from "./ask.js";
import { h, Table } from "./build.js";
import { clock, count, number, numbers } from "./show.js";

/** Stages in their order, and what they are. */
const STAGES = [
  ["queue_us", "queue", "waiting: behind other requests, for the turn of a password check, for the committer"],
  ["plan_us", "plan", "understanding the request, rights and the choice of indexes among it"],
  ["store_us", "store", "reading entries and making answers of them; of a change, its transaction and sync"],
  ["crypto_us", "crypto", "passwords"],
  ["write_us", "write", "waiting until the client takes answers"],
];

/** Microseconds. */
export function micros(us) {
  return us >= 1e6 ? `${number(us / 1e6)} s` : us >= 1000 ? `${number(us / 1000)} ms` : `${us} µs`;
}

/** The stages as parts of a bar that is as long as the slowest one allows. */
function line(operation, longest) {
  const words = STAGES.filter(([field]) => operation[field] > 0)
    .map(([field, name]) => `${name} ${micros(operation[field])}`).join(", ");
  const bar = h("div", { class: "bar", role: "img", "aria-label": words || "no stage was measured", title: words });
  for (const [at, [field]] of STAGES.entries()) {
    const part = h("i", { class: `k${at + 1}` });
    part.style.width = `${(100 * (operation[field] ?? 0)) / Math.max(longest, 1)}%`;
    bar.append(part);
  }
  return h("div", {}, bar, h("span", { class: "key" }, words));
}

function what(operation) {
  const parts = [h("code", {}, operation.dn ?? "the root")];
  if (operation.filter) parts.push(h("br"), h("code", {}, `${operation.scope} ${operation.filter}`));
  if (operation.index) parts.push(h("br"), h("span", { class: "key" }, operation.index));
  return h("div", {}, parts);
}

export class Slow {
  static id = "slow";
  static title = "Slow";

  constructor() {
    this.longest = 1;
    this.table = new Table("The slowest operations of the last minutes", [
      { name: "answered", value: (row) => row.at_us, show: (row) => (row.running ? "under way" : clock(row.at_us / 1000)) },
      { name: "took", number: true, value: (row) => row.time_us, show: (row) => micros(row.time_us) },
      { name: "operation", value: (row) => row.operation },
      { name: "where its time went", show: (row) => line(row, this.longest) },
      { name: "entry, filter, way", value: (row) => `${row.dn ?? ""} ${row.filter ?? ""}`, show: what, kind: "text" },
      { name: "looked at", number: true, value: (row) => row.candidates ?? -1, show: (row) => count(row.candidates) },
      { name: "returned", number: true, value: (row) => row.returned ?? -1, show: (row) => count(row.returned) },
      { name: "result", number: true, value: (row) => row.result ?? -1, show: (row) => String(row.result ?? "–") },
      { name: "who", value: (row) => row.who ?? "", show: (row) => row.who || "anonymous", kind: "text" },
      { name: "from", value: (row) => row.from ?? "" },
    ], 1);
    const legend = STAGES.map(([, name, title], at) => h("span", { class: "key", title }, h("i", { class: `k${at + 1}` }), name));
    this.element = h("div", { class: "panel stack" }, h("div", { class: "row" }, legend), this.table.element);
  }

  async update(isMine) {
    const { operations = [], running = [], why, missing } = await ask(`slow?host=${this.host}`);
    if (!isMine()) return;
    const names = ["at_us", "time_us", "candidates", "returned", "result", ...STAGES.map(([field]) => field)];
    const all = [...running.map((one) => ({ ...numbers(one, names), running: true })),
      ...operations.map((one) => numbers(one, names))];
    this.longest = Math.max(1, ...all.map((operation) => operation.time_us));
    this.table.set(all, why ?? missing ?? this.missing ?? "No operation was answered in the last minutes.");
  }
}
