// Numbers, as people read them.

const digits = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

/** A number: whole from 100 on, tenths below. */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return Math.abs(value) >= 100 ? digits.format(value) : tenths.format(value);
}

/** A number of things, whole. */
export function count(value) {
  return value === null || value === undefined ? "–" : digits.format(value);
}

/** A time in nanoseconds, in three digits. */
export function time(ns) {
  if (ns === null || ns === undefined) return "–";
  for (const [unit, size] of [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]]) {
    const value = ns / size;
    if (value < 1000 || unit === "s") return `${three(value)} ${unit}`;
  }
}

/** Bytes. */
export function bytes(value) {
  if (value === null || value === undefined) return "–";
  let size = Math.abs(value);
  for (const unit of ["B", "KiB", "MiB", "GiB", "TiB"]) {
    if (size < 1024 || unit === "TiB") return `${value < 0 ? "-" : ""}${three(size)} ${unit}`;
    size /= 1024;
  }
}

function three(value) {
  const places = value >= 100 || Number.isInteger(value) ? 0 : value >= 10 ? 1 : 2;
  return value.toFixed(places);
}

/** A length of time in seconds: `3 d 4 h`. */
export function span(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const parts = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const at = parts.findIndex(([, size]) => seconds >= size);
  if (at < 0) return "0 s";
  const [unit, size] = parts[at];
  const whole = Math.floor(seconds / size);
  const [next, part] = parts[at + 1] ?? [];
  const rest = part ? Math.floor((seconds - whole * size) / part) : 0;
  return rest > 0 ? `${whole} ${unit} ${rest} ${next}` : `${whole} ${unit}`;
}

/** A moment, in milliseconds since 1970. */
export function moment(unixMs) {
  return unixMs ? new Date(unixMs).toLocaleString("en-GB", { hour12: false }) : "–";
}

/** A time of the day. */
export function clock(unixMs) {
  return new Date(unixMs).toLocaleTimeString("en-GB", { hour12: false });
}

/** A part of something. */
export function percent(part, whole) {
  if (part === null || part === undefined) return "–";
  return whole > 0 ? `${tenths.format((100 * part) / whole)} %` : "–";
}

/** Facts of `cn=monitor` are texts; these are the ones that are numbers. */
export function numbers(facts, names) {
  const read = {};
  for (const name of names) if (facts[name] !== undefined) read[name] = Number(facts[name]);
  return { ...facts, ...read };
}
