/** The phases of a call as a bar. */
import type { VNode } from "preact";
import { formatDuration } from "../format/format.ts";
import type { Segment } from "./timeline.ts";

/** Units of the picture: segments are shares of them. */
const width = 1000;
const height = 20;
/** What a segment needs to be seen. */
const minWidth = 3;

/** The steps that the page has colours for, in the order of a call. */
export const steps = ["receive", "queue", "acquire", "stage", "run", "collect", "publish"] as const;

export function PhaseBar({ segments }: { readonly segments: readonly Segment[] }): VNode {
  return (
    <svg
      class="phases"
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={segments.length === 0 ? "no phases" : segments.map(segmentText).join(", ")}
    >
      <rect class="ground" width={width} height={height} />
      {segments.map((segment, at) => {
        const wide = Math.max(segment.width * width, minWidth);
        return (
          <rect
            key={at}
            class={`step-${stepClass(segment.step)}${segment.isRunning ? " growing" : ""}`}
            x={Math.max(Math.min(segment.start * width, width - wide), 0)}
            width={wide}
            height={height}
          >
            <title>{segmentText(segment)}</title>
          </rect>
        );
      })}
    </svg>
  );
}

/** The colours of the steps, in words. */
export function PhaseLegend(): VNode {
  return (
    <ul class="legend" aria-label="Colours of the phases">
      {steps.map((step) => (
        <li key={step}>
          <Swatch step={step} /> {step}
        </li>
      ))}
    </ul>
  );
}

export function Swatch({ step }: { readonly step: string }): VNode {
  return (
    <svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">
      <rect class={`step-${stepClass(step)}`} width="10" height="10" rx="2" />
    </svg>
  );
}

function segmentText({ step, durationMs, isRunning }: Segment): string {
  return `${step} ${formatDuration(durationMs)}${isRunning ? " so far" : ""}`;
}

function stepClass(step: string): string {
  return steps.find((known) => known === step) ?? "other";
}
