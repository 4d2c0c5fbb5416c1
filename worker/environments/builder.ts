/**
 * Builds one environment: under its lock, in a sandbox, into its place.
 */
import type { FileHandle } from "node:fs/promises";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../support/clock.ts";
import { installNode, nodeFolder } from "./build/node.ts";
import { type BuilderParts, installPython, pythonFolder } from "./build/python.ts";
import { copyOut, type Installed } from "./build/run.ts";
import type { EnvironmentPlan } from "./environments.ts";
import { writeFacts } from "./facts.ts";
import type { EnvironmentStore, StoredEnvironment } from "./store.ts";

/** What {@link buildEnvironment} uses. */
export interface BuildOptions {
  readonly store: EnvironmentStore;
  readonly parts: BuilderParts;
  readonly clock: Clock;
  /** Told when an installer begins, which it does not where another process has built it. */
  onBegin(plan: EnvironmentPlan): void;
}

/**
 * Builds an environment, or waits for another builder of it and takes what that has built. Throws
 * EnvironmentError, SandboxError; rejects with the signal's reason.
 */
export async function buildEnvironment(
  plan: EnvironmentPlan,
  { store, parts, clock, onBegin }: BuildOptions,
  signal: AbortSignal,
): Promise<StoredEnvironment> {
  const { key, runtime } = plan;
  await using _lock = await store.lock(key, signal);
  const present = await store.use(key);
  if (present !== undefined) return present;
  onBegin(plan);
  const startedMs = clock.monotonicMs();
  const building = await store.startBuild(key);
  try {
    const take = async (
      output: FileHandle,
      { installer, names, signal: over }: Installed,
    ): Promise<void> => {
      const folder = runtime === "python" ? pythonFolder : nodeFolder;
      const target = join(building, folder);
      await mkdir(target);
      const sizeBytes = await copyOut(output, folder, target, over);
      const tookMs = Math.round(clock.monotonicMs() - startedMs);
      await writeFacts(building, {
        runtime,
        title: plan.title,
        names: [...names],
        installer,
        interpreter: plan.interpreter.executable,
        sizeBytes,
        madeAt: new Date(clock.nowMs()).toISOString(),
        tookMs,
      });
    };
    const deadline = AbortSignal.timeout(Math.ceil(parts.host.timeoutSeconds * 1000));
    const timed = { ...parts, host: { ...parts.host, deadline } };
    await (runtime === "python" ? installPython : installNode)(timed, plan, take, signal);
    return await store.publish(key, building);
  } catch (error) {
    await store.discard(building);
    throw error;
  }
}
