/** Numbers, times and sizes as people read them. */

const kibibyte = 1024;
const byteUnits = ["B", "KiB", "MiB", "GiB", "TiB"];

/** `850 µs`, `12 ms`, `1.25 s`, `2 min 5 s`, `3 h 7 min`. */
export function formatDuration(ms: number): string {
  if (ms > 0 && ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 10) return `${trimZeros(ms.toFixed(1))} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${trimZeros((ms / 1000).toFixed(2))} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return join(Math.floor(seconds / 60), "min", seconds % 60, "s");
  const minutes = Math.round(seconds / 60);
  return join(Math.floor(minutes / 60), "h", minutes % 60, "min");
}

/** `0 B`, `1.5 KiB`, `64 MiB`. */
export function formatBytes(bytes: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= kibibyte && unit < byteUnits.length - 1) {
    value /= kibibyte;
    unit += 1;
  }
  return `${trimZeros(value.toFixed(value < 100 ? 1 : 0))} ${byteUnits[unit]}`;
}

/** A bound of a limit, in its unit. */
export function formatBound(bound: number, unit: string): string {
  if (unit === "bytes") return formatBytes(bound);
  if (unit === "seconds") return formatDuration(bound * 1000);
  return unit === "count" ? formatNumber(bound) : `${formatNumber(bound)} ${unit}`;
}

/** A number with at most three significant decimals. */
export function formatNumber(value: number): string {
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(3)));
}

/** The time of day; with the date for another day than that of `nowMs`. */
export function formatTime(atMs: number, nowMs: number): string {
  const at = new Date(atMs);
  const time = [at.getHours(), at.getMinutes(), at.getSeconds()].map(twoDigits).join(":");
  if (at.toDateString() === new Date(nowMs).toDateString()) return time;
  return `${at.getFullYear()}-${twoDigits(at.getMonth() + 1)}-${twoDigits(at.getDate())} ${time}`;
}

/** `1 call`, `3 calls`. */
export function formatCount(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** Names of the wire as words: `peak_memory`, `replyTo`. */
export function asWords(name: string): string {
  return name.replaceAll("_", " ");
}

function join(most: number, unit: string, rest: number, restUnit: string): string {
  return rest === 0 ? `${most} ${unit}` : `${most} ${unit} ${rest} ${restUnit}`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}

function trimZeros(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}
