// Load on a server, or on two that are raced: start, stop, another rate, and what comes of it.

import { ask, tell } from "./ask.js";
import { fill, h } from "./build.js";
import { DASHES, Graph } from "./graph.js";
import { bytes, count, number, percent, time } from "./show.js";

const LANES = 2;
const FIELDS = [
  ["base", "below (DN)", "text"], ["filter", "filter of a search", "text"], ["user_dn", "a user's name (DN)", "text"],
  ["first", "first user", "number"], ["last", "last user", "number"], ["user_password", "users' password", "password"],
];

export class Load {
  static id = "load";
  static title = "Load";

  constructor() {
    this.run = 0;
    this.seconds = Array.from({ length: LANES }, () => []);
    this.made = false;
    this.order = this.form();
    this.said = h("p", { role: "status" });
    this.lanes = h("div", { class: "stack" });
    this.graphs = h("div", { class: "graphs wide" });
    this.element = h("div", { class: "stack" }, this.order, this.said, this.lanes, this.graphs);
    this.plots = [];
  }

  form() {
    const input = (name, label, kind, value, more = {}) =>
      h("label", {}, label, h("input", { name, type: kind, value, autocomplete: "off", ...more }));
    this.scenario = h("select", { name: "scenario", onchange: () => this.explain() });
    this.targets = h("fieldset", {}, h("legend", {}, "servers (two are raced)"));
    this.about = h("span", { class: "note" });
    this.go = h("button", { type: "submit" }, "Start");
    this.halt = h("button", { type: "button", onclick: () => this.stop(), disabled: true }, "Stop");
    this.newRate = h("input", { name: "new_rate", type: "number", min: "0.1", step: "any", "aria-label": "another rate" });
    this.change = h("button", { type: "button", onclick: () => this.changeRate(), disabled: true }, "Change rate");
    this.newRate.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      if (!this.change.disabled) this.changeRate();
    });
    const order = h("form", { class: "order", onsubmit: (event) => { event.preventDefault(); this.start(); } },
      this.targets, h("label", {}, "scenario", this.scenario),
      input("rate", "rate a second", "number", "500", { min: "0.1", step: "any", title: "empty: as fast as answers come" }),
      input("seconds", "seconds", "number", "60", { min: "1", required: true }),
      input("connections", "connections", "number", "8", { min: "1" }),
      input("in_flight", "in flight", "number", "1", { min: "1" }),
      this.go, this.halt,
      h("label", {}, "another rate", h("span", { class: "row" }, this.newRate, this.change)));
    this.more = h("form", { class: "order", onsubmit: (event) => { event.preventDefault(); this.start(); } },
      FIELDS.map(([name, label, kind]) => input(name, label, kind, "", kind === "number" ? { min: "0" } : {})));
    this.fields = order;
    return h("div", { class: "panel stack" }, order, this.about,
      h("details", {}, h("summary", {}, "who is searched for, and where"), this.more));
  }

  explain() {
    const chosen = this.scenarios?.find((scenario) => scenario.name === this.scenario.value);
    this.about.textContent = chosen?.about ?? "";
  }

  offer(about) {
    this.scenarios = about.scenarios;
    fill(this.scenario, about.scenarios.map(({ name }) => h("option", {}, name)));
    const box = (target, at) => h("label", { class: "check" },
      h("input", { type: "checkbox", name: "target", value: String(at), checked: at === 0 }), target.name,
      target.why ? h("span", { class: "bad" }, target.why) : null);
    const legend = this.targets.firstChild;
    fill(this.targets, legend, about.targets.map(box));
    if (about.targets.length === 0) this.targets.append("none: name some with --target URL");
    this.more.elements.base.placeholder = about.targets[0]?.base ?? "as the server shows";
    this.more.elements.filter.placeholder = this.more.elements.user_dn.placeholder = "as the server shows";
    this.made = true;
    this.explain();
  }

  words() {
    const text = (form, name) => form.elements[name].value.trim();
    const figure = (form, name) => (text(form, name) === "" ? null : Number(text(form, name)));
    const targets = [...this.targets.querySelectorAll("input:checked")].map((box) => Number(box.value));
    const [first, last] = [figure(this.more, "first"), figure(this.more, "last")];
    const words = (name) => text(this.more, name) || null;
    return {
      scenario: this.scenario.value, targets, rate: figure(this.fields, "rate"), seconds: figure(this.fields, "seconds"),
      connections: figure(this.fields, "connections"), in_flight: figure(this.fields, "in_flight"),
      base: words("base"), filter: words("filter"), user_dn: words("user_dn"),
      users: first === null || last === null ? null : [first, last],
      user_password: this.more.elements.user_password.value || null,
    };
  }

  async did(what) {
    try {
      this.show(await what);
      this.said.textContent = "";
      this.said.className = "";
    } catch (why) {
      this.said.textContent = why.message;
      this.said.className = "bad";
    }
  }

  start() {
    return this.did(tell("load/start", this.words()));
  }

  stop() {
    return this.did(tell("load/stop"));
  }

  changeRate() {
    return this.did(tell("load/rate", { rate: Number(this.newRate.value) }));
  }

  async update(isMine) {
    const after = Math.max(0, Math.min(...this.seconds.map((lane) => lane.at(-1)?.number ?? 0)));
    const about = await ask(`load?after=${after}`);
    if (!isMine()) return;
    if (!this.made) this.offer(about);
    this.show(about);
  }

  show(about) {
    const { run } = about;
    this.go.disabled = Boolean(run?.going) || about.targets.length === 0;
    this.halt.disabled = !run?.going;
    this.change.disabled = !run?.going || run.rate === null;
    if (!run) return;
    if (run.number !== this.run) this.begin(run);
    run.lanes.forEach((lane, at) => {
      const known = this.seconds[at].at(-1)?.number ?? -1;
      this.seconds[at].push(...lane.seconds.filter((second) => second.number > known));
    });
    run.lanes.forEach((lane, at) => this.lane(lane, at));
    this.draw(run);
  }

  begin(run) {
    this.run = run.number;
    this.seconds = Array.from({ length: LANES }, () => []);
    this.newRate.value = run.rate ?? "";
    this.plots.forEach((plot) => plot.graph.end());
    this.shown = run.lanes.map(() => ({ row: h("div", { class: "row" }), words: h("div"), said: "" }));
    fill(this.lanes, this.shown.map(({ row, words }) => h("div", { class: "panel" }, row, words)));
    const lines = (figures) => run.lanes.flatMap((lane, at) => figures.map(([name, reading, dash]) => ({
      name: run.lanes.length > 1 ? `${lane.target} ${name}` : name, at, reading, dash: dash ?? DASHES[name], colour: run.lanes.length > 1 ? at + 1 : null,
      // The second one is told apart without its colour, too.
      points: at > 0,
    })));
    const plot = (title, figures, options) => {
      const series = lines(figures).map((line, at) => ({ ...line, colour: line.colour ?? at + 1 }));
      return { series, graph: new Graph(title, series, { x: "seconds", ...options }) };
    };
    this.plots = [
      plot("Answered a second", [["answered", (s) => s.done], ["due", (s) => s.due, [2, 3]]], { show: number }),
      plot("Response time", [["p50", (s) => s.p50_ns], ["p99", (s) => s.p99_ns], ["max", (s) => s.max_ns]], { show: time, log: true }),
      plot("Errors a second, and starts that wait", [["errors", (s) => s.errors], ["waiting", (s) => s.backlog, [2, 3]]], { show: number }),
      plot("The client: its busiest thread's share of a core", [["share", (s) => s.cpu_share]], { show: (v) => percent(v, 1) }),
      plot("This machine: its processors", [["busy", (s) => s.host?.cpu_share ?? null]], { show: (v) => percent(v, 1) }),
      plot("This machine: written to disks a second", [["written", (s) => s.host?.written_bytes ?? null]], { show: bytes, binary: true }),
    ];
    fill(this.graphs, this.plots.map((plot) => plot.graph.element));
  }

  draw(run) {
    const last = Math.max(-1, ...this.seconds.map((lane) => lane.at(-1)?.number ?? -1));
    const first = Math.min(...this.seconds.filter((lane) => lane.length).map((lane) => lane[0].number), last);
    const numbers = [];
    for (let at = Math.max(0, first); at <= last; at += 1) numbers.push(at);
    const found = this.seconds.map((lane) => new Map(lane.map((second) => [second.number, second])));
    for (const { series, graph } of this.plots) {
      graph.set([numbers, ...series.map(({ at, reading }) => numbers.map((number) => {
        const second = found[at].get(number);
        return second ? reading(second) : null;
      }))]);
    }
  }

  lane(lane, at) {
    const seconds = this.seconds[at];
    const sum = (what) => seconds.reduce((all, second) => all + second[what], 0);
    const last = seconds.at(-1);
    const connections = lane.connections;
    const parts = [
      h("h2", {}, lane.target), h("span", { class: lane.state === "failed" ? "bad" : "quiet" }, lane.state),
      lane.rate ? h("span", { class: "key" }, "rate ", h("b", {}, `${number(lane.rate)}/s`)) : null,
      connections ? h("span", { class: "key" }, "connections ", h("b", {}, `${connections.open} of ${connections.wanted}`)) : null,
      h("span", { class: "key" }, "answered ", h("b", { "data-figure": `done-${at}` }, count(sum("done")))),
      h("span", { class: "key" }, "errors ", h("b", {}, count(sum("errors")))),
      last ? h("span", { class: "key" }, "p50 ", h("b", {}, time(last.p50_ns)), " p99 ", h("b", {}, time(last.p99_ns)),
        " client ", h("b", {}, percent(last.cpu_share, 1))) : null,
      connections?.why_not ? h("span", { class: "bad" }, connections.why_not) : null,
    ];
    const shown = this.shown[at];
    fill(shown.row, parts);
    if (shown.said === lane.words) return;
    shown.said = lane.words;
    fill(shown.words, lane.state === "failed" ? h("pre", { class: "bad" }, lane.words)
      : h("details", {}, h("summary", {}, "the result"), h("pre", {}, lane.words)));
  }

  end() {
    this.plots.forEach((plot) => plot.graph.end());
  }
}
