/**
 * Wires the attacked worker: the configured one, with the attacks' tools, store and limits.
 */
import { join } from "node:path";
import type { Config } from "./config/config.ts";
import type { AttackReport } from "./doctor/attacks/attack-report.ts";
import type {
  AttackedOptions,
  AttackedWorker,
  Readiness,
} from "./doctor/attacks/attacked-worker.ts";
import type { AttackOptions } from "./doctor/attacks/attack-options.ts";
import { foundAddresses } from "./doctor/attacks/canaries.ts";
import { runAttacks } from "./doctor/run-attacks.ts";
import { type LookUp, lookUpByHost } from "./egress/resolve.ts";
import type { Invoker } from "./invocation/call-context.ts";
import { scratchBases } from "./sandbox/work/scratch-dirs.ts";
import type { Logger } from "./telemetry/logger.ts";
import { wireInvoker } from "./wiring/calls.ts";
import { openFoundation } from "./wiring/foundation.ts";
import type { Host } from "./wiring/host.ts";
import { sandboxUid } from "./wiring/sandboxes.ts";
import { attacksDir } from "./wiring/shipped.ts";

/** Concurrent calls: the attack and its victim. */
const concurrency = 2;
/** Memory budget of idle sandboxes in bytes: a few for each attack. */
const maxWarmBytes = 512 * 1024 * 1024;

/** Recorded names of one attack. */
const maxAskedNames = 10_000;

/** Options of an operator, or of a test. */
export type AttackChoice = Pick<AttackOptions, "attacks" | "profiles" | "known" | "start"> &
  Partial<Pick<AttackOptions, "runtime" | "programsDir" | "bwrapBin" | "onPlan" | "onRow">> & {
    /** Wraps the invoker of the attacked worker. */
    readonly wrapInvoker?: (invoker: Invoker) => Invoker;
  };

/** Attacks the configured sandbox of this host. Rejects with the errors of opening a worker. */
export function attackHost(
  config: Config,
  host: Host,
  choice: AttackChoice,
  signal: AbortSignal,
): Promise<AttackReport> {
  const { bwrapBin, workDir } = config.sandbox;
  const quiet = { ...host, log: quietLog(host.log) };
  const { wrapInvoker = (invoker) => invoker, ...chosen } = choice;
  return runAttacks(
    {
      programsDir: attacksDir(),
      // Where the first cannot be written to, as in many containers, the work directory.
      canaryDirs: [scratchBases.canaries, workDir],
      bwrapBin,
      workDir,
      uid: sandboxUid(config),
      log: quiet.log,
      open: async (options, whileOpening) => {
        const worker = await openAttacked(config, quiet, options, whileOpening);
        return { ...worker, invoker: wrapInvoker(worker.invoker) };
      },
      ...chosen,
    },
    signal,
  );
}

async function openAttacked(
  config: Config,
  host: Host,
  { manifestPath, toolsDir, environment, store, profiles }: AttackedOptions,
  signal: AbortSignal,
): Promise<AttackedWorker> {
  const attackedConfig: Config = {
    ...config,
    manifestPath,
    toolsPythonDir: toolsDir,
    toolsNodeDir: toolsDir,
    toolsExecutableDir: join(toolsDir, "none"),
    toolsetsDir: undefined,
    sandbox: {
      ...config.sandbox,
      maxConcurrent: concurrency,
      maxQueued: concurrency,
      maxWarmBytes,
    },
    packages: { ...config.packages, policy: "check" },
    artifacts: { ...config.artifacts, store: { kind: "memory" } },
  };
  const attackedHost = { ...host, environment: { ...host.environment, ...environment } };
  await using opened = new AsyncDisposableStack();
  const askedNames: string[] = [];
  const lookUp: LookUp = (name, whileAsking) => {
    if (askedNames.length < maxAskedNames) askedNames.push(name);
    const addresses = foundAddresses.get(name);
    return addresses === undefined
      ? lookUpByHost(name, whileAsking)
      : Promise.resolve({ addresses, ttlSeconds: 0 });
  };
  const foundation = opened.use(
    await openFoundation(attackedConfig, attackedHost, signal, { profiles, lookUp }),
  );
  const wired = wireInvoker(attackedConfig, attackedHost, { ...foundation, store });
  const { invoker, starts } = wired;
  opened.use(wired.checker);
  opened.use(starts);
  const owned = opened.move();
  const readinessOf = (toolName: string): Readiness => {
    const found = starts.stats.filter(({ tool }) => tool === toolName);
    return {
      idle: found.reduce((sum, { idle }) => sum + idle, 0),
      startMode: found.find(({ startMode }) => startMode !== undefined)?.startMode,
      failure: found.find(({ failure }) => failure !== undefined)?.failure,
    };
  };
  return {
    ...foundation,
    ...{ invoker, starts, readinessOf },
    takeAskedNames: () => askedNames.splice(0),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Hides the worker's warnings about tools, unless the operator asks for debug messages. */
function quietLog(log: Logger): Logger {
  const level = log.isLevelEnabled("debug") ? log.level : "error";
  return log.child({ part: "attack" }, { level });
}
