// The server's figures of this second and of the last minutes.

import { ask } from "./ask.js";
import { fill, h, Table, tiles } from "./build.js";
import { DASHES, Graph } from "./graph.js";
import { bytes, clock, count, number, percent, time } from "./show.js";

export const OPERATIONS = [["bind", "ldap.bind"], ["search", "ldap.search"], ["compare", "ldap.compare"],
  ["add", "ldap.add"], ["delete", "ldap.delete"], ["modify", "ldap.modify"], ["moddn", "ldap.modify_dn"],
  ["unbind", "ldap.unbind"], ["extended", "ldap.extended"]];
/** As many as the server keeps. */
const POINTS = 600;
/** From one look to the next at most, in milliseconds; more is a gap. */
const GAP_MS = 2500;
/** How much of it graphs show, in seconds. */
export const range = { seconds: POINTS };

/** The points that this page has seen, of one server. */
export class Past {
  constructor() {
    this.points = [];
    this.next = 0;
    this.history = "";
    this.isUp = true;
    this.now = 0;
  }

  async update(host, isMine) {
    const seen = await ask(`now?host=${host}&after=${this.next}`);
    if (!isMine()) return seen;
    // Another process, or another server: from the beginning.
    if (seen.history !== this.history || seen.next < this.next) this.points = [];
    this.history = seen.history;
    this.next = seen.next;
    // A server of another kind counts less: a missing counter is not 0.
    const known = seen.known ? new Set(seen.known) : null;
    for (const point of seen.points) point.known = known;
    this.points = [...this.points, ...seen.points].slice(-POINTS);
    this.isUp = seen.up;
    this.now = seen.now_unix_ms;
    return seen;
  }

  last() {
    return this.points.at(-1);
  }

  /** Times, and a list for each reading of a point. A gap in time is a gap in the lines, also at the end. */
  data(readings) {
    const data = [[], ...readings.map(() => [])];
    const gap = (unixMs) => {
      data[0].push(unixMs / 1000);
      readings.forEach((_, at) => data[at + 1].push(null));
    };
    let before = null;
    for (const point of this.points.filter((point) => point.unix_ms > this.now - 1000 * range.seconds)) {
      if (before && point.unix_ms - before > GAP_MS) gap(before + 1000);
      before = point.unix_ms;
      data[0].push(point.unix_ms / 1000);
      readings.forEach((reading, at) => data[at + 1].push(reading(point)));
    }
    if (before && !this.isUp) {
      gap(before + 1000);
      if (this.now > before + 1000) gap(this.now);
    }
    return data;
  }
}

const isTold = (point, name) => !point.known || point.known.has(name);
const rate = (name) => (point) => (isTold(point, name) ? (point.counts[name] ?? 0) / point.seconds : null);
const host = (name) => (point) => point.host?.[name] ?? null;
const gauge = (name) => (point) => point.now[name] ?? null;
const figure = (name, what) => (point) => point.times[name]?.[what] ?? null;

function total(point) {
  const told = OPERATIONS.filter(([, name]) => isTold(point, name));
  return told.length ? told.reduce((sum, [, name]) => sum + (point.counts[name] ?? 0), 0) / point.seconds : null;
}

/** Codes that were answered and report a fault, the most frequent ones first. */
function codes(points) {
  const all = new Map();
  for (const { counts } of points) {
    for (const [name, value] of Object.entries(counts)) {
      if (name.startsWith("ldap.error.")) all.set(name, (all.get(name) ?? 0) + value);
    }
  }
  return [...all].sort((one, other) => other[1] - one[1]).map(([name]) => name);
}

export class Now {
  static id = "now";
  static title = "Now";

  constructor() {
    this.past = new Past();
    this.figures = h("div");
    const name = (name) => ({ name, dash: DASHES[name] });
    this.graphs = [
      [new Graph("Operations a second", OPERATIONS.map(([shown]) => name(shown)), { show: number }),
        OPERATIONS.map(([, counter]) => rate(counter))],
      [new Graph("From request to answer, all operations", [name("p50"), name("p99"), name("max")], { show: time, log: true }),
        ["p50", "p99", "max"].map((what) => figure("ldap.time", what))],
      [new Graph("Faults a second", [name("refused"), name("busy"), name("TLS failed"), name("sync errors")], { show: number }),
        ["ldap.refused", "ldap.busy", "tls.failed", "store.sync_errors"].map(rate)],
      [new Graph("Connections, and requests that wait", [name("open"), name("queue"), name("passwords")], { show: number }),
        [gauge("ldap.connections"), gauge("ldap.queue"), gauge("password.waiting")]],
      [new Graph("TLS handshakes a second", [name("all"), name("resumed"), name("failed")], { show: number }),
        ["tls.handshakes", "tls.resumed", "tls.failed"].map(rate)],
      [new Graph("Changes and commits a second", [name("changes"), name("commits")], { show: number }),
        ["store.changes", "store.commits"].map(rate)],
      [new Graph("Commits: changes in one", [name("p50"), name("p99"), name("max")], { show: number }),
        ["p50", "p99", "max"].map((what) => figure("store.group", what))],
      [new Graph("Commits: how long one takes", [name("p50"), name("p99"), name("max")], { show: time, log: true }),
        ["p50", "p99", "max"].map((what) => figure("store.sync", what))],
      [new Graph("Bytes a second, without TLS", [name("in"), name("out")], { show: bytes, binary: true }),
        ["ldap.bytes_in", "ldap.bytes_out"].map(rate)],
      [new Graph("This machine: its processors", [name("busy")], { show: (share) => percent(share, 1) }), [host("cpu_share")]],
      [new Graph("This machine: bytes a second", [name("written to disks"), name("received"), name("sent")], { show: bytes, binary: true }),
        ["written_bytes", "received_bytes", "sent_bytes"].map(host)],
    ];
    const shown = (column) => (row) => time(row[column]);
    const timed = ["p50", "p99", "max"].map((what) => ({ name: what, number: true, value: (row) => row[what] ?? -1, show: shown(what) }));
    this.table = new Table("The last second, by operation", [
      { name: "operation", value: (row) => row.name },
      { name: "a second", number: true, value: (row) => row.rate, show: (row) => number(row.rate) },
      ...timed,
    ]);
    this.faults = new Table("Faults of the minutes shown, by result code", [
      { name: "code", value: (row) => row.name },
      { name: "last second", number: true, value: (row) => row.last, show: (row) => number(row.last) },
      { name: "in all", number: true, value: (row) => row.all, show: (row) => count(row.all) },
    ]);
    this.element = h("div", { class: "stack" }, this.figures,
      h("div", { class: "graphs" }, this.graphs.map(([graph]) => graph.element),
        h("div", { class: "panel" }, this.table.element), h("div", { class: "panel" }, this.faults.element)));
  }

  async update(isMine) {
    await this.past.update(this.host, isMine);
    if (!isMine()) return;
    this.graphs.forEach(([graph, readings]) => graph.set(this.past.data(readings)));
    const last = this.past.last();
    if (last && !this.past.isUp) {
      // The last figures are not those of now.
      this.table.set([], "The server is not seen.");
      fill(this.figures, h("p", { class: "gone", role: "alert" }, `Not seen since ${clock(last.unix_ms)}; figures are of then.`),
        h("div", { class: "stale" }, tiles(this.tiles(last))));
      return;
    }
    if (!last) {
      fill(this.figures, h("p", { class: "note" }, "No look at the server has succeeded yet."));
      return;
    }
    fill(this.figures, tiles(this.tiles(last)), this.missing ? h("p", { class: "note" }, this.missing) : null);
    this.tables(last);
  }

  tiles(last) {
    const all = last.times["ldap.time"] ?? {};
    const group = last.times["store.group"];
    return [
      ["operations/s", number(total(last))], ["p50", time(all.p50)], ["p99", time(all.p99)], ["max", time(all.max)],
      ["faults/s", number(rate("ldap.refused")(last))], ["connections", count(last.now["ldap.connections"])],
      ["TLS/s", number(rate("tls.handshakes")(last))], ["queue", count(last.now["ldap.queue"])],
      ["commits/s", number(rate("store.commits")(last))], ["group", group ? number(group.mean) : "–"],
      ["sync p99", time(last.times["store.sync"]?.p99)], ["entries/s", number(rate("ldap.entries_sent")(last))],
      ["host CPU", percent(host("cpu_share")(last), 1), "all processors of this machine"],
      ["host disk", last.host ? `${bytes(last.host.written_bytes)}/s` : "–", "written by this machine, all of it"],
    ];
  }

  tables(last) {
    this.table.set(OPERATIONS.map(([name, counter]) => ({
      name, rate: rate(counter)(last), ...(last.times[counter.replace("ldap.", "ldap.time.")] ?? {}),
    })).filter((row) => row.rate > 0), "No operation in the last second.");
    const seen = codes(this.past.points).map((name) => ({
      name: name.slice("ldap.error.".length), last: rate(name)(last),
      all: this.past.points.reduce((sum, point) => sum + (point.counts[name] ?? 0), 0),
    }));
    this.faults.set(seen, this.missing ?? "No operation was answered with a fault.");
  }

  end() {
    this.graphs.forEach(([graph]) => graph.end());
  }
}
