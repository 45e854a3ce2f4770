// Who is connected, from where, over what, and what they wait for.

import { ask } from "./ask.js";
import { fill, h, Table, tiles } from "./build.js";
import { count, moment, numbers, span } from "./show.js";

function over(row) {
  // Ours tell how long each is idle, and so what they are over.
  if (row.idle_ms === undefined) return "–";
  if (!row.tls) return "no TLS";
  const words = [row.tls, row.group, row.resumed === "true" ? "resumed" : null].filter(Boolean).join(", ");
  return h("span", { title: row.suite }, words);
}

export class Connections {
  static id = "connections";
  static title = "Connections";

  constructor() {
    const n = (name, what) => ({ name, number: true, value: (row) => row[what] ?? -1, show: (row) => count(row[what]) });
    this.figures = h("div");
    this.table = new Table("Connections that are open", [
      n("number", "connection"),
      { name: "from", value: (row) => row.from ?? "" },
      { name: "who", value: (row) => row.who ?? "", show: (row) => row.who || "anonymous", kind: "text" },
      { name: "over", value: (row) => row.tls ?? "", show: over },
      { name: "since", value: (row) => row.since_us, show: (row) => moment(row.since_us / 1000) },
      { name: "idle", number: true, value: (row) => row.idle_ms ?? -1, show: (row) => (row.idle_ms === undefined ? "–" : span(row.idle_ms / 1000)) },
      n("requests", "requests"), n("in flight", "in_flight"), n("queued", "queued"),
    ], 6);
    this.element = h("div", { class: "stack" }, this.figures, h("div", { class: "panel" }, this.table.element));
  }

  async update(isMine) {
    const about = await ask(`connections?host=${this.host}`);
    if (!isMine()) return;
    const names = ["connection", "since_us", "idle_ms", "requests", "in_flight", "queued"];
    const all = (about.connections ?? []).map((one) => numbers(one, names));
    const who = new Set(all.map((row) => row.who ?? ""));
    fill(this.figures, tiles([
      ["open", count(all.length)], ["over TLS", this.missing ? "–" : count(all.filter((row) => row.tls).length)], ["identities", count(who.size)],
      ["in flight", this.missing ? "–" : count(all.reduce((sum, row) => sum + (row.in_flight ?? 0), 0))],
      ["accepted since the start", count(about.counters?.counts["ldap.connection.opened"]?.[0])],
    ]));
    this.table.set(all, about.why ?? about.missing ?? this.missing ?? "No connection is open.");
  }
}
