// Tabs, servers, colours; and a look every second at what the open tab shows.

import { ask } from "./ask.js";
import { h, fill } from "./build.js";
import { recolour } from "./graph.js";
import { Now, range } from "./now.js";
import { Slow } from "./slow.js";
import { Filters } from "./filters.js";
import { Connections } from "./connections.js";
import { Store } from "./store.js";
import { Crypto } from "./crypto.js";
import { Backups } from "./backups.js";
import { Load } from "./load.js";

const EVERY_MS = 1000;
const EVERY_HIDDEN_MS = 5000;
const PAGES = [Now, Slow, Filters, Connections, Store, Crypto, Backups, Load];

const panel = document.getElementById("panel");
const state = document.getElementById("state");
const hosts = document.getElementById("host");
const tabs = new Map();
let open = null;

function select(id) {
  const Page = PAGES.find((page) => page.id === id) ?? Now;
  open?.end?.();
  for (const [name, tab] of tabs) {
    const is = name === Page.id;
    tab.setAttribute("aria-selected", String(is));
    tab.tabIndex = is ? 0 : -1;
  }
  panel.setAttribute("aria-labelledby", `tab-${Page.id}`);
  document.title = `Keyway: ${Page.title}`;
  open = new Page();
  open.host = Number(hosts.value) || 0;
  fill(panel, open.element);
  look();
}

function go(id) {
  if (location.hash === `#${id}`) select(id);
  else location.hash = id;
}

function make() {
  for (const { id, title } of PAGES) {
    const tab = h("button", { role: "tab", id: `tab-${id}`, "aria-controls": "panel", onclick: () => go(id) }, title);
    tabs.set(id, tab);
  }
  const list = document.getElementById("tabs");
  list.append(...tabs.values());
  list.addEventListener("keydown", (event) => {
    const ids = [...tabs.keys()];
    const at = ids.findIndex((id) => tabs.get(id) === document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: ids.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const id = ids[(to + ids.length) % ids.length];
    tabs.get(id).focus();
    go(id);
  });
  hosts.addEventListener("change", () => select(open.constructor.id));
  window.addEventListener("hashchange", () => select(location.hash.slice(1)));
}

function colours() {
  const choice = document.getElementById("colours");
  choice.value = localStorage.getItem("keyway-colours") ?? "";
  const apply = () => {
    document.documentElement.dataset.colours = choice.value;
    localStorage.setItem("keyway-colours", choice.value);
    recolour();
  };
  choice.addEventListener("change", apply);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  apply();
  const tables = document.getElementById("tables");
  tables.addEventListener("click", () => {
    const are = document.documentElement.classList.toggle("tables");
    tables.setAttribute("aria-pressed", String(are));
    look();
  });
}

function ranges() {
  const choice = document.getElementById("range");
  const kept = localStorage.getItem("keyway-range");
  if ([...choice.options].some((option) => option.value === kept)) choice.value = kept;
  range.seconds = Number(choice.value);
  choice.addEventListener("change", () => {
    range.seconds = Number(choice.value);
    localStorage.setItem("keyway-range", choice.value);
    look();
  });
}

function say(text, isBad) {
  if (state.textContent !== text) state.textContent = text;
  state.classList.toggle("bad", Boolean(isBad));
}

async function servers() {
  const { hosts: all } = await ask("hosts");
  const names = all.map((host) => host.name);
  if (names.join("\n") !== [...hosts.options].map((option) => option.text).join("\n")) {
    fill(hosts, names.map((name, at) => h("option", { value: String(at) }, name)));
  }
  const host = all[Number(hosts.value) || 0];
  if (!host) return;
  open.missing = host.missing ?? null;
  const since = host.started_unix_ms ? ` since ${new Date(host.started_unix_ms).toLocaleString("en-GB")}` : "";
  say(host.up ? `up${since}` : `not seen: ${host.why ?? "no look yet"}`, !host.up);
  panel.classList.toggle("gone", !host.up);
}

let timer = null;
let round = 0;

/** Looks now, and again later. A look that another one has overtaken shows nothing. */
async function look() {
  clearTimeout(timer);
  const mine = (round += 1);
  const page = open;
  page.host = Number(hosts.value) || 0;
  try {
    await servers();
    await page.update(() => mine === round);
  } catch (why) {
    panel.classList.add("gone");
    say(why.status === 401 ? "no longer logged in: open the page anew" : why.message, true);
    if (!why.status && !(why.status === 0)) console.error(why);
  }
  if (mine === round) timer = setTimeout(look, document.hidden ? EVERY_HIDDEN_MS : EVERY_MS);
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
make();
colours();
ranges();
select(location.hash.slice(1));
