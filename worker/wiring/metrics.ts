/**
 * Opens the page of metrics of a worker.
 */
import type { Page } from "../telemetry/health.ts";
import { type EventLog, logEvent } from "../telemetry/log-event.ts";
import type { Samples } from "../telemetry/metrics/catalog.ts";

/**
 * Makes pages of these metrics. The first page loads the library, which a worker that nobody asks
 * does without. Rejects where one cannot be made; the log has the first cause.
 */
export function openMetrics(samples: Samples, log: EventLog<"warn">): () => Promise<Page> {
  let loading: Promise<() => Promise<Page>> | undefined;
  let hasFailed = false;
  return async () => {
    try {
      loading ??= load(samples);
      const makePage = await loading;
      return await makePage();
    } catch (error) {
      // The next request tries again: a cause such as too many open files passes.
      loading = undefined;
      if (!hasFailed) logEvent(log, "metrics.failed", { err: error });
      hasFailed = true;
      throw error;
    }
  };
}

async function load(samples: Samples): Promise<() => Promise<Page>> {
  const { exposition } = await import("../telemetry/metrics/exposition.ts");
  return exposition(samples);
}
