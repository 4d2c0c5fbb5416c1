/**
 * Worker processes that are killed, each of which is followed by another at once.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { effectSource } from "./chaos-effects.ts";
import { manifestText } from "./rig.ts";
import { WorkerProcess } from "./worker-process.ts";

/** Tools that may run twice, and tools that must not. */
export const chaosTools = ["repeatable", "once"] as const;
export type ChaosTool = (typeof chaosTools)[number];

/** How the workers are started. */
export interface ChaosWorkersOptions {
  readonly count: number;
  /** Exists, and is removed by its owner after the workers. */
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** Always so many workers, under ids that none had before. Disposing kills them. */
export class ChaosWorkers implements AsyncDisposable {
  readonly #options: ChaosWorkersOptions;
  readonly #living = new Map<string, WorkerProcess>();
  #started = 0;
  #isDisposed = false;

  private constructor(options: ChaosWorkersOptions) {
    this.#options = options;
  }

  static async start(options: ChaosWorkersOptions): Promise<ChaosWorkers> {
    await using stack = new AsyncDisposableStack();
    const workers = stack.use(new ChaosWorkers(options));
    const tool = { module: "effect", function: "run", timeout_seconds: 60 };
    const manifest = { repeatable: tool, once: { ...tool, idempotent: false } };
    await writeFile(join(options.directory, "manifest.yaml"), manifestText(manifest));
    for (let index = 0; index < options.count; index++) await workers.#startOne();
    stack.move();
    return workers;
  }

  /** Of the workers that live now. */
  get ids(): readonly string[] {
    return [...this.#living.keys()];
  }

  /** Kills a worker with SIGKILL, if it lives, and starts another. Resolves when the one is dead and the other is on its way. */
  async kill(id: string): Promise<void> {
    const worker = this.#living.get(id);
    if (worker === undefined) return;
    this.#living.delete(id);
    worker.child.kill("SIGKILL");
    await worker.exited;
    await this.#startOne();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    await Promise.all(this.#living.values().map((worker) => worker[Symbol.asyncDispose]()));
  }

  async #startOne(): Promise<void> {
    const id = `worker-${++this.#started}`;
    const { directory, environment } = this.#options;
    const toolsDir = join(directory, `tools-${id}`);
    await mkdir(toolsDir);
    await writeFile(join(toolsDir, "effect.py"), effectSource(id));
    // A chaos that failed may be about to kill one.
    if (this.#isDisposed) return;
    const worker = new WorkerProcess({
      SAM_WORKER_ID: id,
      MANIFEST_PATH: join(directory, "manifest.yaml"),
      TOOLS_PYTHON_DIR: toolsDir,
      SANDBOX_WORK_DIR: join(directory, `work-${id}`),
      SANDBOX_MAX_CONCURRENT: "2",
      SANDBOX_MIN_FREE_DISK_MB: "1",
      CONNECT_RETRY_DELAY_MS: "500",
      SOLACE_RECONNECT_DELAY_MS: "500",
      SOLACE_RECONNECT_RETRIES: "0",
      HEALTH_PORT: "0",
      ...environment,
    });
    this.#living.set(id, worker);
  }
}
