/**
 * Metrics of which nothing has been counted.
 */
import { type Samples, metrics } from "../../../worker/telemetry/metrics/catalog.ts";

const nothing = () => [];

/** No value of any metric. */
export const noSamples = Object.fromEntries(
  Object.keys(metrics).map((name) => [name, nothing]),
) as unknown as Samples;
