/**
 * Worker processes that are ended in one way or another, each of which is followed by another at
 * once.
 */
import { once } from "node:events";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { repeatMs } from "../../../worker/support/signal-filter.ts";
import { effectSource } from "./effects.ts";
import type { ChaosHistory } from "./history.ts";
import type { ChaosLine, ChaosLines } from "./wire/line.ts";
import { type ChaosTool, chaosEntries, chaosQueues } from "./tools.ts";
import { manifestText } from "../workers/rig.ts";
import { type WorkerExit, WorkerProcess } from "../workers/worker-process.ts";

/** How a worker is ended: killed; drained; or told to stop at once while it drains. */
export type WorkerEnd = "SIGKILL" | "SIGTERM" | "SIGTERM twice";

/** Milliseconds beyond those within which two signals count as one. */
const hurryMs = 50;

/** As workers read it. */
const slotsOfQueues = Object.entries(chaosQueues)
  .map(([queue, slots]) => `${queue}:${slots}`)
  .join();

/**
 * How workers end that do as they are told: one that has drained before the second signal ends as
 * one that got one.
 */
const goodEnds: Readonly<Record<WorkerEnd, readonly string[]>> = {
  SIGKILL: ["SIGKILL"],
  SIGTERM: ["0"],
  "SIGTERM twice": ["0", "143"],
};

/** How the workers are started. */
export interface ChaosWorkersOptions {
  readonly count: number;
  /** Exists, and is removed by its owner after the workers. */
  readonly directory: string;
  /** What each has in common, and where it finds the broker. */
  readonly environment: (port: number) => Readonly<Record<string, string>>;
  readonly lines: ChaosLines;
  readonly history: ChaosHistory;
}

interface ChaosWorker {
  readonly process: WorkerProcess;
  readonly line: ChaosLine;
  readonly manifestPath: string;
  readonly withdrawn: Set<ChaosTool>;
}

/** Always so many workers, under ids that none had before. Disposing kills them. */
export class ChaosWorkers implements AsyncDisposable {
  readonly #options: ChaosWorkersOptions;
  readonly #owned = new AsyncDisposableStack();
  readonly #living = new Map<string, ChaosWorker>();
  readonly #logs = new Map<string, () => string>();
  #started = 0;
  #isOver = false;

  private constructor(options: ChaosWorkersOptions) {
    this.#options = options;
  }

  static async start(options: ChaosWorkersOptions): Promise<ChaosWorkers> {
    await using stack = new AsyncDisposableStack();
    const workers = stack.use(new ChaosWorkers(options));
    for (let index = 0; index < options.count; index++) await workers.#startOne();
    stack.move();
    return workers;
  }

  /** Of the workers that serve, or will in a moment. */
  get ids(): readonly string[] {
    return [...this.#living.keys()];
  }

  /** Lines of their logs that name a request, by worker. */
  logsOf(request: string): readonly string[] {
    return Array.from(this.#logs).flatMap(([id, output]) =>
      output()
        .split("\n")
        .filter((line) => line.includes(`"${request}"`))
        .map((line) => `${id}: ${line}`),
    );
  }

  /**
   * Ends a worker, if it lives, and starts another. Resolves when the one has ended and the other
   * is on its way.
   */
  async end(id: string, how: WorkerEnd): Promise<void> {
    const worker = this.#living.get(id);
    if (worker === undefined) return;
    this.#living.delete(id);
    await Promise.all([this.#end(id, worker, how), this.#startOne()]);
  }

  /** Ends all, in good order. Resolves when they have ended. */
  async drain(): Promise<void> {
    this.#isOver = true;
    const last = [...this.#living];
    this.#living.clear();
    await Promise.all(last.map(([id, worker]) => this.#end(id, worker, "SIGTERM")));
  }

  /** Breaks the connections of a worker. */
  cut(id: string): void {
    this.#living.get(id)?.line.cut();
  }

  /**
   * Breaks the connections of a worker, and lets none through until the returned object is
   * disposed.
   */
  holdOff(id: string): Disposable {
    const line = this.#living.get(id)?.line;
    line?.close();
    return { [Symbol.dispose]: () => line?.reopen() };
  }

  /**
   * Takes a tool out of the manifest of a worker. Resolves when the worker knows, or has ended.
   * Rejects with the signal's reason.
   */
  async withdraw(tool: ChaosTool, id: string, signal: AbortSignal): Promise<void> {
    const worker = this.#living.get(id);
    if (worker === undefined || worker.withdrawn.has(tool)) return;
    this.#options.history.tell({ kind: "withdrawn", worker: id, tool });
    // Before, it may read either manifest, and does not say which.
    await this.#untilSaid(id, "worker.ready", 0, signal);
    const before = worker.process.output.length;
    worker.withdrawn.add(tool);
    await writeManifest(worker);
    await this.#untilSaid(id, `"removed":["${tool}"]`, before, signal);
  }

  /** Puts a tool back into the manifests that it was taken out of. */
  async putBack(tool: ChaosTool): Promise<void> {
    for (const worker of this.#living.values())
      if (worker.withdrawn.delete(tool)) await writeManifest(worker);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#living.clear();
    await this.#owned.disposeAsync();
  }

  async #end(id: string, { process }: ChaosWorker, how: WorkerEnd) {
    const { history } = this.#options;
    const { child, exited } = process;
    // Before its first word a worker may have nothing that listens to signals, and no call.
    const isNew = process.output === "";
    history.tell({ kind: "stopped", worker: id, how });
    child.kill(how === "SIGKILL" ? "SIGKILL" : "SIGTERM");
    if (how === "SIGTERM twice") {
      // Sooner it would count as one.
      await Promise.race([sleep(repeatMs + hurryMs), exited]);
      child.kill("SIGTERM");
    }
    const end = endOf(await exited);
    const isGood = goodEnds[how].includes(end) || (isNew && end === "SIGTERM");
    history.tell({ kind: "ended", worker: id, how: end, isGood });
  }

  /**
   * Waits until a worker has said something after so many characters, or is to end. Rejects when
   * the signal aborts.
   */
  async #untilSaid(id: string, text: string, after: number, signal: AbortSignal): Promise<void> {
    for (;;) {
      const worker = this.#living.get(id)?.process;
      if (worker === undefined || worker.output.includes(text, after)) return;
      await Promise.race([once(worker.child.stdout!, "data", { signal }), worker.exited]);
    }
  }

  async #startOne(): Promise<void> {
    const id = `worker-${++this.#started}`;
    const { directory, environment, lines, history } = this.#options;
    const toolsDir = join(directory, `tools-${id}`);
    await mkdir(toolsDir);
    await writeFile(join(toolsDir, "effect.py"), effectSource(id));
    const line = this.#owned.use(await lines.open(id));
    const withdrawn = new Set<ChaosTool>();
    const manifestPath = join(directory, `manifest-${id}.yaml`);
    await writeManifest({ manifestPath, withdrawn });
    // A chaos that failed may have been about to end one.
    if (this.#isOver) return;
    const worker = this.#owned.use(
      new WorkerProcess({
        SAM_WORKER_ID: id,
        MANIFEST_PATH: manifestPath,
        TOOLS_PYTHON_DIR: toolsDir,
        SANDBOX_WORK_DIR: join(directory, `work-${id}`),
        WORKER_QUEUES: slotsOfQueues,
        DRAIN_TIMEOUT_SECONDS: "20",
        SANDBOX_MIN_FREE_DISK_MB: "1",
        ARTIFACT_SERVICE_TYPE: "filesystem",
        ARTIFACT_BASE_PATH: join(directory, "artifacts"),
        CONNECT_RETRIES: "0",
        CONNECT_RETRY_DELAY_MS: "500",
        SOLACE_RECONNECT_RETRIES: "0",
        SOLACE_RECONNECT_DELAY_MS: "500",
        HEALTH_PORT: "0",
        ...environment(line.port),
      }),
    );
    this.#logs.set(id, () => worker.output);
    this.#living.set(id, { process: worker, line, manifestPath, withdrawn });
    void worker.exited.then((exit) => {
      // Nobody has told it to.
      if (this.#living.delete(id))
        history.tell({ kind: "ended", worker: id, how: endOf(exit), isGood: false });
    });
  }
}

function endOf({ code, signal }: WorkerExit): string {
  return signal ?? String(code);
}

/** In one piece: a worker never sees half of it. */
async function writeManifest({
  manifestPath,
  withdrawn,
}: Pick<ChaosWorker, "manifestPath" | "withdrawn">): Promise<void> {
  const written = `${manifestPath}.new`;
  await writeFile(written, manifestText(chaosEntries(withdrawn)));
  await rename(written, manifestPath);
}
