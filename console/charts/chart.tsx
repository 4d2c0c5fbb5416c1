/** A line chart of samples, with the same as a table. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Sample } from "../../worker/console/api.ts";
import { formatTime } from "../format/format.ts";
import { Table } from "../ui/table.tsx";
import { linePath, maxOf, niceMarks, type Frame, type Series } from "./scale.ts";

export interface ChartProperties {
  readonly title: string;
  readonly samples: readonly Sample[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  /** What the marks of the axis are round numbers of; 1 unless given. */
  readonly unit?: number;
}

const size = { width: 480, height: 180 };
const frame: Frame = { left: 62, top: 10, width: 408, height: 142 };
/** Rows of a chart's table, the newest samples. */
const maxTableRows = 60;

export function Chart(properties: ChartProperties): VNode {
  const { title, samples, series, format, unit } = properties;
  const marks = niceMarks(maxOf(samples, series), unit);
  const top = marks.at(-1) ?? 1;
  const nowMs = samples.at(-1)?.atMs ?? 0;
  const times = [samples[0], samples.at(-1)].map((sample) => formatTime(sample?.atMs ?? 0, nowMs));
  return (
    <figure class="card chart">
      <figcaption>
        <h2>{title}</h2>
        <ul class="legend">
          {series.map(({ label }, at) => (
            <li key={label}>
              <svg class="swatch line" viewBox="0 0 24 10" aria-hidden="true">
                <path class={`line-${at}`} d="M1 5h22" />
              </svg>{" "}
              {label}
            </li>
          ))}
        </ul>
      </figcaption>
      <svg
        viewBox={`0 0 ${size.width} ${size.height}`}
        role="img"
        aria-label={`${title}: ${summaryOf(properties)}`}
      >
        {marks.map((mark) => {
          const y = frame.top + frame.height * (1 - mark / top);
          return (
            <g key={mark}>
              <path class="grid" d={`M${frame.left} ${y.toFixed(1)}h${frame.width}`} />
              <text x={frame.left - 6} y={y + 4} text-anchor="end">
                {format(mark)}
              </text>
            </g>
          );
        })}
        <text x={frame.left} y={size.height - 6}>
          {times[0]}
        </text>
        <text x={frame.left + frame.width} y={size.height - 6} text-anchor="end">
          {times[1]}
        </text>
        {series.map((one, at) => (
          <path key={one.label} class={`line-${at}`} d={linePath(samples, one, top, frame)} />
        ))}
      </svg>
      <ValuesTable {...properties} nowMs={nowMs} />
    </figure>
  );
}

function ValuesTable(properties: ChartProperties & { readonly nowMs: number }): VNode {
  const { title, samples, series, format, nowMs } = properties;
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>Values</summary>
      {isOpen && (
        <Table
          caption={`${title}, the newest first`}
          columns={["Time", ...series.map(({ label }) => label)]}
          numeric={series.map((_, at) => at + 1)}
          rows={samples
            .slice(-maxTableRows)
            .toReversed()
            .map((sample) => [
              formatTime(sample.atMs, nowMs),
              ...series.map((one) => valueText(one, sample, format)),
            ])}
        />
      )}
    </details>
  );
}

function summaryOf({ samples, series, format }: ChartProperties): string {
  const last = samples.at(-1);
  return series
    .map((one) => {
      const now = last === undefined ? "–" : valueText(one, last, format);
      return `${one.label} now ${now}, at most ${format(maxOf(samples, [one]))}`;
    })
    .join("; ");
}

function valueText(series: Series, sample: Sample, format: (value: number) => string): string {
  const value = series.valueOf(sample);
  return value === null ? "–" : format(value);
}
