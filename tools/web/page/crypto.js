// Drivers of the engine, the daemon's clients, and the keys that it holds.

import { ask } from "./ask.js";
import { h, Table } from "./build.js";
import { rows } from "./filters.js";
import { bytes, count, moment, number, numbers, percent, time } from "./show.js";

/** Rows of an engine's counters: one for each driver and algorithm. */
function work(counters, seconds, process) {
  const now = (row, what) => counters.now?.[`engine.${row.driver}.${row.algorithm}.${what}`];
  const runs = (row) => counters.times?.[`engine.${row.driver}.${row.algorithm}.run`];
  return rows(counters.counts ?? {}, "engine.", ["driver", "algorithm"]).map((row) => ({
    ...row, process, rate: (row.operations_last ?? 0) / seconds, bytes_rate: (row.bytes_last ?? 0) / seconds,
    run: runs(row)?.interval ?? runs(row)?.since_start, predicted: now(row, "predicted"),
    failed: now(row, "last_failure"), backlog: counters.now?.[`engine.${row.driver}.backlog`],
  })).filter((row) => row.operations > 0 || row.busy > 0);
}

/** What came in between two answers about the daemon, whose counters are told as they are. */
function since(counts, before) {
  return Object.fromEntries(Object.entries(counts).map(([name, value]) => [name, [value, Math.max(0, value - (before[name] ?? value))]]));
}

export class Crypto {
  static id = "crypto";
  static title = "Crypto";

  constructor() {
    const n = (name, what, show = count) => ({ name, number: true, value: (row) => row[what] ?? 0, show: (row) => show(row[what]) });
    this.drivers = new Table("Drivers and algorithms", [
      { name: "process", value: (row) => row.process },
      { name: "driver", value: (row) => row.driver },
      { name: "algorithm", value: (row) => row.algorithm },
      n("a second", "rate", number), n("bytes/s", "bytes_rate", bytes),
      n("since start", "operations"),
      { name: "share", number: true, value: (row) => row.operations, show: (row) => percent(row.operations, this.all) },
      { name: "p50", number: true, value: (row) => row.run?.p50 ?? 0, show: (row) => time(row.run?.p50) },
      { name: "p99", number: true, value: (row) => row.run?.p99 ?? 0, show: (row) => time(row.run?.p99) },
      n("predicted", "predicted", time), n("backlog", "backlog", time),
      n("busy", "busy"), n("errors", "errors"),
      { name: "last failure", value: (row) => row.failed ?? 0, show: (row) => (row.failed ? moment(row.failed * 1000) : "–") },
    ], 3);
    this.clients = new Table("Clients of the engine", [
      { name: "process", value: (row) => row.process },
      { name: "client", value: (row) => row.client },
      n("a second", "rate", number), n("bytes/s", "bytes_rate", bytes), n("since start", "operations"), n("bytes", "bytes", bytes),
    ], 2);
    this.guests = new Table("Processes that use cryptod", [
      { name: "name", value: (row) => row.name ?? "", kind: "text" },
      n("pid", "pid", String), n("uid", "uid", String), n("sessions", "sessions"), n("rings", "queues"),
      n("memory", "region_bytes", bytes), n("requests", "requests"), n("bytes", "bytes", bytes),
      n("refused", "refused"), n("throttled", "throttled"), n("weight", "weight", String), n("keys", "keys"),
    ], 6);
    this.keys = new Table("Keys that cryptod holds", [
      { name: "name", value: (row) => row.name, show: (row) => h("code", {}, row.name), kind: "text" },
      { name: "algorithms", value: (row) => (row.algorithms ?? []).join(", "), kind: "text" },
      n("version", "version", String),
      { name: "state", value: (row) => row.state },
      { name: "made", value: (row) => row.made_ms ?? 0, show: (row) => moment(row.made_ms) },
      n("uses", "uses"),
    ], 0);
    this.keys.down = false;
    this.note = h("p", { class: "note" });
    this.before = {};
    this.at = 0;
    this.all = 1;
    const tables = [this.drivers, this.clients, this.guests, this.keys];
    this.element = h("div", { class: "stack" }, tables.map((table) => h("div", { class: "panel" }, table.element)), this.note);
  }

  async update(isMine) {
    const about = await ask(`crypto?host=${this.host}`);
    if (!isMine()) return;
    const seconds = about.counters?.seconds || 1;
    const processes = [["directory", about.counters ?? {}, seconds]];
    const daemon = about.daemon;
    if (daemon?.counts) {
      const now = performance.now();
      const counters = { counts: since(daemon.counts, this.before), times: daemon.times, now: daemon.now };
      processes.push(["cryptod", counters, Math.max(0.1, (now - this.at) / 1000)]);
      this.before = daemon.counts;
      this.at = now;
    }
    const all = processes.flatMap(([process, counters, seconds]) => work(counters, seconds, process));
    this.all = all.reduce((sum, row) => sum + row.operations, 0);
    this.drivers.set(all, about.why ?? this.missing ?? "Nothing was done yet.");
    this.clients.set(processes.flatMap(([process, counters, seconds]) => rows(counters.counts ?? {}, "client.", ["client"])
      .map((row) => ({ ...row, process, rate: (row.operations_last ?? 0) / seconds, bytes_rate: (row.bytes_last ?? 0) / seconds }))
      .filter((row) => row.operations > 0)), this.missing ?? "No client is counted apart.");
    const why = daemon?.why ?? (daemon ? about.missing ?? "None." : "No cryptod is seen from here.");
    const names = ["pid", "uid", "sessions", "queues", "region_bytes", "requests", "bytes", "refused", "throttled", "weight", "keys"];
    this.guests.set((daemon?.clients ?? []).map((client) => numbers(client, names)), why);
    this.keys.set(daemon?.keys ?? [], why);
  }
}
