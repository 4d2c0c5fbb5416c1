/**
 * A sandbox backend whose sandboxes show what they print, and can be looked into before their work
 * directory goes.
 */
import { finished } from "node:stream/promises";
import type {
  Enforcement,
  Execution,
  Launch,
  Sandbox,
  SandboxBackend,
  SandboxRequest,
  Unenforced,
} from "../../../worker/sandbox/sandbox.ts";
import type { Limits } from "../../../worker/protocol/resource-limits.ts";
import type { NetworkUsage } from "../../../worker/protocol/execution.ts";
import { type EndedConnection, firstRefusals } from "../../../worker/sandbox/network/sockets.ts";
import type { WorkDir } from "../../../worker/sandbox/work/work-dir.ts";
import type { StreamName } from "../../invoke/output-view.ts";

/** Watches the sandboxes of a backend. */
export interface SandboxObserver {
  /** Called with output as it comes. It must not throw. */
  onOutput(name: StreamName, chunk: Uint8Array): void;
  /**
   * Called when no process of the sandbox is alive and its work directory is about to be removed.
   * It must not throw.
   */
  readonly onEnd: (workDir: WorkDir) => Promise<void>;
  /** Called with each connection that has ended, and the first refusals. It must not throw. */
  readonly onConnection?: (connection: EndedConnection) => void;
}

/** The backend with an observer in each of its sandboxes. The inner one stays its owner's. */
export function observed(backend: SandboxBackend, observer: SandboxObserver): SandboxBackend {
  return {
    scratchDir: backend.scratchDir,
    facts: (profile) => backend.facts(profile),
    share: (directory) => backend.share(directory),
    acquire: async (request: SandboxRequest, signal: AbortSignal) =>
      new ObservedSandbox(await backend.acquire(request, signal), observer),
    [Symbol.asyncDispose]: () => backend[Symbol.asyncDispose](),
  };
}

class ObservedSandbox implements Sandbox {
  readonly backend: Sandbox["backend"];
  readonly workDir: WorkDir;
  readonly limits: Limits;
  readonly enforcement: Enforcement;
  readonly unenforced: readonly Unenforced[];
  readonly #inner: Sandbox;
  readonly #observer: SandboxObserver;
  #execution: Execution | undefined;

  constructor(inner: Sandbox, observer: SandboxObserver) {
    this.workDir = inner.workDir;
    this.backend = inner.backend;
    this.limits = inner.limits;
    this.enforcement = inner.enforcement;
    this.unenforced = inner.unenforced;
    this.#inner = inner;
    this.#observer = observer;
  }

  get networkUsage(): NetworkUsage | undefined {
    return this.#inner.networkUsage;
  }

  locate(insidePath: string): string {
    return this.#inner.locate(insidePath);
  }

  async start(launch: Launch): Promise<Execution> {
    const execution = await this.#inner.start(launch);
    // Before anything else is waited for: what comes first must not be missed.
    for (const name of ["stdout", "stderr"] as const)
      execution[name].on("data", (chunk: Buffer) => this.#observer.onOutput(name, chunk));
    this.#execution = execution;
    const { onConnection } = this.#observer;
    if (onConnection !== undefined) this.#inner.connections?.follow(firstRefusals(onConnection));
    return execution;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#execution?.stop(0);
      await this.#outputRead();
      await this.#observer.onEnd(this.workDir);
    } finally {
      await this.#inner[Symbol.asyncDispose]();
    }
  }

  async #outputRead(): Promise<void> {
    if (this.#execution === undefined) return;
    const { stdout, stderr } = this.#execution;
    await Promise.all([finished(stdout), finished(stderr)]);
  }
}
