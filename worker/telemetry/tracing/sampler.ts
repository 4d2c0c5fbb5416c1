/**
 * Which traces are recorded, by the samplers that OpenTelemetry names.
 */
import type { TraceContext } from "./trace-context.ts";

/** Samplers as `OTEL_TRACES_SAMPLER` names them. */
export const samplerNames = [
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
  "always_on",
  "always_off",
  "traceidratio",
] as const;

export type SamplerName = (typeof samplerNames)[number];

/** Whether a call is recorded, by its trace and the caller's place in it. */
export type Sampler = (traceId: string, parent: TraceContext | undefined) => boolean;

const parentBased = "parentbased_";

/**
 * Hex digits of a trace id that decide: of the last 14, which are random by the W3C trace context,
 * level 2, those that a number holds.
 */
const decidingDigits = { from: -14, to: -1, values: 16 ** 13 } as const;

/** @param ratio the part of the traces that samplers called `traceidratio` record, 0 to 1 */
export function samplerOf(name: SamplerName, ratio: number): Sampler {
  if (!name.startsWith(parentBased)) return ownSampler(name, ratio);
  const root = ownSampler(name.slice(parentBased.length), ratio);
  return (traceId, parent) => parent?.isSampled ?? root(traceId, undefined);
}

function ownSampler(name: string, ratio: number): Sampler {
  if (name === "always_on") return () => true;
  if (name === "always_off") return () => false;
  // Every worker and agent that goes by these digits decides alike.
  const { from, to, values } = decidingDigits;
  return (traceId) => Number.parseInt(traceId.slice(from, to), 16) >= (1 - ratio) * values;
}
