/**
 * Looks at the idle sandboxes.
 */
import type { PoolStats, Starts } from "../worker/pool/starts.ts";

/** Tells what is going on with each tool, in this process or in another. */
export type StockView = () => Promise<readonly PoolStats[]>;

/** Milliseconds between two looks: less than a sandbox takes to be made. */
const lookEveryMs = 2;
/** Milliseconds after which somebody should see what is wrong. */
const quietTimeoutMs = 60_000;

/** What is going on with sandboxes of this process. */
export function statsOf(starts: Starts | undefined): readonly PoolStats[] {
  return starts?.stats ?? [];
}

/** Calls of one tool so far that found a sandbox waiting. */
export async function hitsOf(view: StockView, tool: string): Promise<number> {
  const pools = (await view()).filter((pool) => pool.tool === tool);
  return pools.reduce((sum, { hits }) => sum + hits, 0);
}

/**
 * Waits until everywhere as many sandboxes wait as should, and none is being made. Throws after a
 * minute.
 */
export async function quiet(views: readonly StockView[]): Promise<void> {
  const lateMs = performance.now() + quietTimeoutMs;
  for (;;) {
    const pools = (await Promise.all(views.map((view) => view()))).flat();
    const busy = pools.filter(({ idle, making, target }) => making > 0 || idle < target);
    if (busy.length === 0) return;
    if (performance.now() > lateMs)
      throw new Error(`sandboxes that should wait do not: ${JSON.stringify(busy)}`);
    const { promise, resolve } = Promise.withResolvers<void>();
    setTimeout(resolve, lookEveryMs);
    await promise;
  }
}
