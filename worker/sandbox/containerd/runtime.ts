/**
 * Containers of containerd, which its client runs and removes.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Limits } from "../../protocol/resource-limits.ts";
import type { Clock } from "../../support/clock.ts";
import type { Bundle } from "../oci/bundle.ts";
import type { OciContainer, OciRuntime } from "../oci/runtime.ts";
import { isGone, knownChildrenOf, signalQuietly } from "../proc/processes.ts";
import { type Enforcement, SandboxError, type Unenforced } from "../sandbox.ts";
import type { Subprocess } from "../subprocess.ts";
import type { ContainerdClient } from "./client.ts";

/** Milliseconds between two looks for the number of a container's first process. */
const startLookMs = 5;
/** Milliseconds between two looks at whether it is gone. */
const goneLookMs = 2;
/** Milliseconds after which it is given up. */
const goneTimeoutMs = 10_000;

/** A runtime of containerd. */
export interface ContainerdParts {
  readonly backend: "containerd" | "kata";
  readonly client: ContainerdClient;
  /** containerd's name of the runtime. */
  readonly runtime: string;
  readonly technology: string;
  /** Whether the host's kernel runs the command. */
  readonly sharesKernel: boolean;
  readonly clock: Clock;
  /** Told of a namespace that could not be removed; a later worker tries again. */
  onRemoveFailed(error: unknown): void;
}

/** The kernel keeps what control groups and rlimits bound; the worker sees processes of its own. */
const enforcementOf = (sharesKernel: boolean): Enforcement => ({
  memoryBytes: "kernel",
  cpuSeconds: sharesKernel ? "guard" : "none",
  cpus: "kernel",
  processes: "kernel",
  openFiles: "kernel",
  fileSizeBytes: "kernel",
  tmpBytes: "kernel",
  diskBytes: "guard",
  files: "guard",
  statusBytes: "guard",
});

/** Containers of one worker. */
export class ContainerdRuntime implements OciRuntime {
  readonly backend: string;
  readonly technology: string;
  readonly enforcement: Enforcement;
  readonly unenforced: readonly Unenforced[];
  readonly sharesKernel: boolean;
  readonly makesGroups = true;
  readonly cgroups = undefined;
  readonly memoryFile = undefined;
  readonly #client: ContainerdClient;
  readonly #runtime: string;
  readonly #clock: Clock;
  readonly #onRemoveFailed: (error: unknown) => void;

  constructor(parts: ContainerdParts) {
    const { backend, client, runtime, technology, sharesKernel, clock } = parts;
    this.backend = backend;
    this.technology = technology;
    this.enforcement = enforcementOf(sharesKernel);
    this.unenforced = sharesKernel ? [] : ["held-files"];
    this.sharesKernel = sharesKernel;
    this.#client = client;
    this.#runtime = runtime;
    this.#clock = clock;
    this.#onRemoveFailed = (error) => parts.onRemoveFailed(error);
  }

  /** The group bounds them; behind another kernel the host's processes are not the sandbox's. */
  sampled(limits: Limits): Limits {
    if (this.sharesKernel) return { ...limits, processes: Infinity };
    return { ...limits, processes: Infinity, memoryBytes: Infinity, cpuSeconds: Infinity };
  }

  command({ id, path }: Bundle): readonly string[] {
    return this.#client.command(
      ...["run", "--rm", "--runtime", this.#runtime, "--fifo-dir", join(path, "fifos")],
      ...["--pid-file", pidFileOf(path), "--config", join(path, "config.json"), id],
    );
  }

  attach(bundle: Bundle, child: Subprocess): OciContainer {
    return new Container(bundle, child, this.#client, this.sharesKernel, this.#clock);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.removeAll().catch(this.#onRemoveFailed);
  }
}

function pidFileOf(path: string): string {
  return join(path, "pid");
}

class Container implements OciContainer {
  readonly started: Promise<number | undefined>;
  readonly #bundle: Bundle;
  readonly #child: Subprocess;
  readonly #client: ContainerdClient;
  readonly #sharesKernel: boolean;
  readonly #clock: Clock;
  #firstPid: number | undefined;
  #isOver = false;

  constructor(
    bundle: Bundle,
    child: Subprocess,
    client: ContainerdClient,
    sharesKernel: boolean,
    clock: Clock,
  ) {
    this.#bundle = bundle;
    this.#child = child;
    this.#client = client;
    this.#sharesKernel = sharesKernel;
    this.#clock = clock;
    void child.exited.then(() => (this.#isOver = true));
    this.started = this.#awaitPid();
  }

  /** The first process is a shell: it spares the signal, and ends with the command. */
  terminate(): void {
    const first = this.#firstPid;
    if (!this.#sharesKernel) void this.#signal("SIGTERM");
    else if (first !== undefined && !this.#isOver)
      for (const pid of knownChildrenOf(first)) signalQuietly(pid, "SIGTERM");
  }

  /** The end of a pid namespace's first process ends all others (pid_namespaces(7)). */
  kill(): void {
    const first = this.#firstPid;
    if (!this.#sharesKernel) void this.#signal("SIGKILL");
    else if (first !== undefined && !this.#isOver) signalQuietly(first, "SIGKILL");
    else if (first === undefined) this.#child.kill("SIGKILL");
  }

  async ended(): Promise<boolean> {
    const [first, { signal }] = await Promise.all([this.started, this.#child.exited]);
    // A client that was killed has removed nothing.
    if (signal !== undefined) await this.#client.remove(this.#bundle.id);
    if (first !== undefined && this.#sharesKernel) await this.#awaitGone(first);
    return first !== undefined;
  }

  async #signal(signal: NodeJS.Signals): Promise<void> {
    const args = ["tasks", "kill", "--all", "--signal", signal, this.#bundle.id];
    await this.#client.ask(args).catch(() => undefined);
  }

  async #awaitPid(): Promise<number | undefined> {
    const file = pidFileOf(this.#bundle.path);
    for (;;) {
      const wasOver = this.#isOver;
      const text = await readFile(file, "utf8").catch(() => "");
      if (/^\d+$/.test(text)) return (this.#firstPid = Number(text));
      if (wasOver) return undefined;
      await this.#clock.sleep(startLookMs);
    }
  }

  async #awaitGone(pid: number): Promise<void> {
    const deadlineMs = this.#clock.monotonicMs() + goneTimeoutMs;
    while (!isGone(pid)) {
      if (this.#clock.monotonicMs() > deadlineMs)
        throw new SandboxError(`process ${pid} of a container cannot be ended`);
      await this.#clock.sleep(goneLookMs);
    }
  }
}
