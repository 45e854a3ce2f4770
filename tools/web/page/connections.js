// Who is connected, from where, over what, and what they wait for.

import { ask } from "./ask.js";
import { fill, h, Table, tiles } from "./build.js";
import { count, moment, span } from "./show.js";

function tls(row) {
  if (!row.tls) return row.over ?? "–";
  const { version, group, suite, resumed } = row.tls;
  return h("span", { title: suite }, [version, group, resumed ? "resumed" : null].filter(Boolean).join(", "));
}

export class Connections {
  static id = "connections";
  static title = "Connections";

  constructor() {
    const n = (name, what) => ({ name, number: true, value: (row) => row[what] ?? -1, show: (row) => count(row[what]) });
    this.figures = h("div");
    this.table = new Table("Connections that are open", [
      n("number", "id"),
      { name: "from", value: (row) => row.from },
      { name: "who", value: (row) => row.who ?? "", show: (row) => row.who || "nobody", kind: "text" },
      { name: "over", value: (row) => row.tls?.version ?? row.over ?? "", show: tls },
      { name: "since", value: (row) => row.since_ms, show: (row) => moment(row.since_ms) },
      { name: "idle", number: true, value: (row) => row.idle_ms ?? -1, show: (row) => (row.idle_ms === undefined ? "–" : span(row.idle_ms / 1000)) },
      n("requests", "requests"), n("in flight", "in_flight"), n("queued", "queued"),
    ], 6);
    this.element = h("div", { class: "stack" }, this.figures, h("div", { class: "panel" }, this.table.element));
  }

  async update(isMine) {
    const { connections = [], total, why } = await ask(`connections?host=${this.host}`);
    if (!isMine()) return;
    const who = new Set(connections.map((row) => row.who ?? ""));
    const secured = connections.filter((row) => row.tls).length;
    fill(this.figures, tiles([
      ["open", count(connections.length)], ["over TLS", count(secured)], ["identities", count(who.size)],
      ["in flight", count(connections.reduce((sum, row) => sum + (row.in_flight ?? 0), 0))],
      ["accepted since the start", count(total)],
    ]));
    this.table.set(connections, why ?? "No connection is open.");
  }
}
