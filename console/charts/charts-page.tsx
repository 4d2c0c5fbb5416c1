/** What the worker did in the last minutes. */
import type { VNode } from "preact";
import { formatBytes, formatDuration, formatNumber } from "../format/format.ts";
import { useConsole } from "../state/store.ts";
import { Chart, type ChartProperties } from "./chart.tsx";

const charts: readonly Omit<ChartProperties, "samples">[] = [
  {
    title: "Calls per second",
    format: formatNumber,
    series: [
      { label: "calls", valueOf: ({ calls, seconds }) => calls / seconds },
      { label: "errors", valueOf: ({ errors, seconds }) => errors / seconds },
    ],
  },
  {
    title: "Latency",
    format: formatDuration,
    series: [
      { label: "p50", valueOf: ({ p50Ms }) => p50Ms },
      { label: "p99", valueOf: ({ p99Ms }) => p99Ms },
    ],
  },
  {
    title: "Calls in the worker",
    format: formatNumber,
    series: [
      { label: "running", valueOf: ({ running }) => running },
      { label: "waiting", valueOf: ({ waiting }) => waiting },
    ],
  },
  {
    title: "Warm sandboxes",
    format: formatNumber,
    series: [
      { label: "idle", valueOf: ({ idle }) => idle },
      { label: "wanted", valueOf: ({ idleWanted }) => idleWanted },
    ],
  },
  {
    title: "Memory of warm sandboxes",
    format: formatBytes,
    unit: 1024 * 1024,
    series: [{ label: "memory", valueOf: ({ idleMemoryBytes }) => idleMemoryBytes }],
  },
];

export function ChartsPage(): VNode {
  const { samples } = useConsole().state;
  return (
    <>
      <h1 tabIndex={-1}>Charts</h1>
      {samples.length < 2 ? (
        <p>The worker takes a sample every few seconds; the charts begin with the second.</p>
      ) : (
        <div class="charts">
          {charts.map((chart) => (
            <Chart key={chart.title} {...chart} samples={samples} />
          ))}
        </div>
      )}
    </>
  );
}
