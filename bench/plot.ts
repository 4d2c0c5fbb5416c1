/**
 * A benchmark run as plots: SVG that is drawn once, without scripts, and readable on light and dark
 * pages alike.
 */
import type { Measurement, RowKind } from "./measure.ts";
import { type BenchReport, describeRun } from "./report.ts";

/** Sizes in the units of the picture, which are pixels where it is not scaled. */
const size = { width: 960, labels: 300, values: 60, row: 20, top: 76, bottom: 34, margin: 16 };
/** Where the scale begins and ends. */
const [left, right] = [size.labels, size.width - size.values - size.margin];

/** A colour, on a light page and on a dark one. */
export type Shades = readonly [light: string, dark: string];

/** A colour for each kind of row, on a light page and on a dark one. */
const colours: Readonly<Record<RowKind, Shades>> = {
  floor: ["#6e7781", "#8b949e"],
  cold: ["#0969da", "#58a6ff"],
  pool: ["#bc4c00", "#f0883e"],
  template: ["#1a7f37", "#3fb950"],
  loop: ["#8250df", "#bc8cff"],
  batch: ["#bf3989", "#f778ba"],
};

const legend: Readonly<Record<RowKind, string>> = {
  floor: "no tool",
  cold: "cold",
  pool: "pool",
  template: "template",
  loop: "event loop",
  batch: "batch",
};

/** What is drawn of one row, between `left` and `right`; y is the middle of its line. */
type Mark = (row: Measurement, y: number) => string;

/** A scale: where a value is, and the values that are written below. */
interface Scale {
  readonly x: (value: number) => number;
  readonly ticks: readonly number[];
}

/** Times of all rows on a logarithmic scale: a dot for the median, a bar to p90, a line to p99. */
export function plotTimes(report: BenchReport): string {
  const rows = report.rows.filter(({ kind }) => kind !== undefined);
  const { x, ticks } = logarithmic(rows.flatMap(({ medianMs, p99Ms }) => [medianMs, p99Ms]));
  const mark: Mark = ({ medianMs, p90Ms, p99Ms }, y) =>
    [
      `<path d="M${x(medianMs)} ${y}H${x(p99Ms)}m0 -4v8"/>`,
      `<path class="bar" d="M${x(medianMs)} ${y}H${x(p90Ms)}"/>`,
      `<circle cx="${x(medianMs)}" cy="${y}" r="4"/>`,
    ].join("");
  const title = "Milliseconds: median (dot), p90 (bar), p99 (line)";
  return plot(report, title, rows, { x, ticks }, mark, ({ medianMs }) =>
    medianMs.toFixed(medianMs < 10 ? 2 : 1),
  );
}

/** Calls per second and core of the rows that run a tool. */
export function plotThroughput(report: BenchReport): string {
  const rate = ({ callsPerSecond = 0 }: Measurement): number =>
    callsPerSecond / report.machine.cores;
  const rows = report.rows.filter(
    ({ kind, callsPerSecond }) =>
      kind !== undefined && kind !== "floor" && callsPerSecond !== undefined,
  );
  const scale = linear(rows.map(rate));
  const mark: Mark = (row, y) => `<path class="bar" d="M${left} ${y}H${scale.x(rate(row))}"/>`;
  const title = `Calls per second and core, ${report.inFlight} at once`;
  return plot(report, title, rows, scale, mark, (row) => rate(row).toFixed(0));
}

function plot(
  report: BenchReport,
  title: string,
  rows: readonly Measurement[],
  { x, ticks }: Scale,
  mark: Mark,
  valueOf: (row: Measurement) => string,
): string {
  const bottom = size.top + rows.length * size.row;
  const height = bottom + size.bottom;
  const kinds = Object.keys(colours) as readonly RowKind[];
  const shown = kinds.filter((kind) => rows.some((row) => row.kind === kind));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<desc>${escaped(describeRun(report))}</desc>`,
    `<style>${styles(colours)}</style>`,
    `<rect class="page" width="${size.width}" height="${height}" rx="6"/>`,
    `<text class="title" x="${size.margin}" y="28">${escaped(title)}</text>`,
    ...shown.map(
      (kind, index) =>
        `<g class="${kind}"><circle cx="${left + 6 + index * 100}" cy="52" r="4"/></g>` +
        `<text x="${left + 16 + index * 100}" y="56">${legend[kind]}</text>`,
    ),
    ...ticks.map(
      (tick) =>
        `<path class="grid" d="M${x(tick)} ${size.top}V${bottom}"/>` +
        `<text class="tick" x="${x(tick)}" y="${bottom + 20}">${tick}</text>`,
    ),
    ...rows.map((row, index) => {
      const y = size.top + (index + 0.5) * size.row;
      return [
        `<text x="${size.margin}" y="${y + 4}">${escaped(row.name)}</text>`,
        `<g class="${row.kind}">${mark(row, y)}</g>`,
        `<text class="value" x="${size.width - size.margin}" y="${y + 4}">${valueOf(row)}</text>`,
      ].join("");
    }),
    "</svg>",
    "",
  ].join("\n");
}

/** From the last 1, 2 or 5 times a power of ten below all values to the first above. */
function logarithmic(values: readonly number[]): Scale {
  const positive = values.filter((value) => value > 0);
  const steps = Array.from({ length: 8 }, (_, index) => 10 ** (index - 2)).flatMap((power) =>
    [1, 2, 5].map((step) => Number((step * power).toPrecision(1))),
  );
  const from = steps.findLast((step) => step <= Math.min(...positive)) ?? steps[0] ?? 1;
  const to = steps.find((step) => step >= Math.max(...positive)) ?? steps.at(-1) ?? 1;
  const width = Math.log(to / from);
  return {
    x: (value) => between(Math.log(Math.max(value, from) / from) / width),
    ticks: steps.filter((step) => step >= from && step <= to),
  };
}

/** From nothing to the first round number above all values. */
function linear(values: readonly number[]): Scale {
  const max = Math.max(...values, 1);
  const power = 10 ** Math.floor(Math.log10(max));
  const step = [0.2, 0.5, 1, 2].map((part) => part * power).find((part) => max / part <= 8) ?? max;
  const count = Math.ceil(max / step);
  return {
    x: (value) => between(value / (step * count)),
    ticks: Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(3))),
  };
}

/** A place between the ends of the scale, to a tenth of a pixel. */
function between(part: number): number {
  return Math.round((left + part * (right - left)) * 10) / 10;
}

/** The style sheet of a plot with classes of these colours. */
export function styles(of: Readonly<Record<string, Shades>>): string {
  const light = { page: "#ffffff", ink: "#1f2328", soft: "#59636e", grid: "#d8dee4" };
  const dark = { page: "#0d1117", ink: "#e6edf3", soft: "#9198a1", grid: "#30363d" };
  const paint = (page: typeof light, shade: 0 | 1): string =>
    [
      `.page{fill:${page.page}}text{fill:${page.ink}}.tick{fill:${page.soft}}.grid{stroke:${page.grid}}`,
      ...Object.entries(of).map(
        ([kind, shades]) => `.${kind}{fill:${shades[shade]};stroke:${shades[shade]}}`,
      ),
    ].join("");
  return [
    `text{font:12px system-ui,sans-serif}.title{font-size:15px;font-weight:600}`,
    `.tick{text-anchor:middle}.value{text-anchor:end}path{fill:none}.bar{stroke-width:8;stroke-opacity:.55}`,
    paint(light, 0),
    `@media (prefers-color-scheme:dark){${paint(dark, 1)}}`,
  ].join("");
}

/** Text as XML has it. */
export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
