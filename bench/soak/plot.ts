/**
 * A soak over time, as a plot: latencies, memory, descriptors, and the delay of the event loop.
 */
import { type Shades, escaped, styles } from "../plot.ts";
import type { Point } from "./points.ts";
import { type SoakReport, describeSoak } from "./table.ts";

const bytesPerMebibyte = 1024 * 1024;

/** Sizes in the units of the picture. */
const size = { width: 960, left: 70, right: 24, top: 44, panel: 110, gap: 46, bottom: 34 };
const [left, right] = [size.left, size.width - size.right];
/** Steps of an axis. */
const steps = 4;

const colours: Readonly<Record<string, Shades>> = {
  first: ["#0969da", "#58a6ff"],
  second: ["#bc4c00", "#f0883e"],
};

/** A line of a panel. */
interface Line {
  readonly colour: "first" | "second";
  readonly name: string;
  readonly valueOf: (point: Point) => number;
}

interface Panel {
  readonly title: string;
  readonly lines: readonly Line[];
}

const panels: readonly Panel[] = [
  {
    title: "latency, ms",
    lines: [
      { colour: "first", name: "median", valueOf: ({ latencyP50Ms }) => latencyP50Ms },
      { colour: "second", name: "p99", valueOf: ({ latencyP99Ms }) => latencyP99Ms },
    ],
  },
  {
    title: "memory, MiB",
    lines: [
      {
        ...{ colour: "first", name: "resident" },
        valueOf: ({ memoryBytes }) => memoryBytes / bytesPerMebibyte,
      },
      {
        ...{ colour: "second", name: "in use" },
        valueOf: ({ liveBytes }) => liveBytes / bytesPerMebibyte,
      },
    ],
  },
  {
    title: "open descriptors and resources of the event loop",
    lines: [
      { colour: "first", name: "descriptors", valueOf: ({ descriptors }) => descriptors },
      { colour: "second", name: "resources", valueOf: ({ resources }) => resources },
    ],
  },
  {
    title: "delay of the event loop, ms",
    lines: [
      { colour: "first", name: "p99 of a second", valueOf: ({ loopP99Ms }) => loopP99Ms },
      { colour: "second", name: "greatest", valueOf: ({ loopMaxMs }) => loopMaxMs },
    ],
  },
];

/** One panel for each measure, over minutes. */
export function plotSoak(report: SoakReport): string {
  const height = size.top + panels.length * (size.panel + size.gap) + size.bottom;
  const title = `A soak of ${Number(report.minutes.toFixed(1))} minutes at ${report.callsPerSecond} calls a second`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<desc>${escaped(describeSoak(report))}</desc>`,
    `<style>${styles(colours)}.line{stroke-width:1.5}.axis{text-anchor:end}</style>`,
    `<rect class="page" width="${size.width}" height="${height}" rx="6"/>`,
    `<text class="title" x="16" y="28">${escaped(title)}</text>`,
    ...panels.flatMap((panel, index) => drawn(panel, index, report)),
    `<text class="tick" x="${(left + right) / 2}" y="${height - 12}">minutes</text>`,
    "</svg>",
    "",
  ].join("\n");
}

function drawn(
  { title, lines }: Panel,
  index: number,
  { points, minutes }: SoakReport,
): readonly string[] {
  const top = size.top + index * (size.panel + size.gap) + size.gap / 2;
  const bottom = top + size.panel;
  const highest = roundAbove(
    Math.max(0, ...points.flatMap((point) => lines.map(({ valueOf }) => valueOf(point)))),
  );
  const seconds = Math.max(minutes * 60, points.at(-1)?.atSeconds ?? 0);
  const x = (atSeconds: number): number => tenth(left + (atSeconds / seconds) * (right - left));
  const y = (value: number): number => tenth(bottom - (value / highest) * size.panel);
  const parts = Array.from({ length: steps + 1 }, (_, step) => step / steps);
  return [
    `<text x="${left}" y="${top - 8}">${escaped(title)}</text>`,
    ...lines.map(
      ({ colour, name }, number) =>
        `<g class="${colour}"><circle cx="${right - 260 + number * 140}" cy="${top - 12}" r="4"/></g>` +
        `<text x="${right - 250 + number * 140}" y="${top - 8}">${escaped(name)}</text>`,
    ),
    ...parts.map((part) => {
      const value = part * highest;
      return (
        `<path class="grid" d="M${left} ${y(value)}H${right}"/>` +
        `<text class="axis" x="${left - 8}" y="${y(value) + 4}">${short(value)}</text>`
      );
    }),
    ...parts.map(
      (part) =>
        `<text class="tick" x="${x(part * seconds)}" y="${bottom + 14}">${short((part * seconds) / 60)}</text>`,
    ),
    ...lines.map(({ colour, valueOf }) => {
      const path = points.map((point) => `${x(point.atSeconds)} ${y(valueOf(point))}`).join("L");
      return path === "" ? "" : `<g class="${colour}"><path class="line" d="M${path}"/></g>`;
    }),
  ];
}

/** The first of 1, 2, 4 and 8 times a power of ten that is not below the value. */
function roundAbove(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 4, 8, 10].map((step) => step * power).find((each) => each >= value) ?? 10 * power;
}

function short(value: number): string {
  return String(Number(value.toPrecision(3)));
}

function tenth(value: number): number {
  return Math.round(value * 10) / 10;
}
