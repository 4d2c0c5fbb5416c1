/**
 * A sandbox technology and a tool language in this process, at their contracts: code is a text that
 * is loaded when the contract says so, and shown when it runs. It tells when something is used or
 * given back in the wrong order.
 */
import { Readable } from "node:stream";
import type { ToolRunner } from "../../../worker/runners/runner.ts";
import type { IdleStartMode } from "../../../worker/sandbox/profile.ts";
import {
  type AheadOfCalls,
  type Execution,
  type ExitReport,
  type Launch,
  type ParkedSandbox,
  type Sandbox,
  SandboxError,
  type SandboxRequest,
  type Template,
} from "../../../worker/sandbox/sandbox.ts";
import type { Clock } from "../../../worker/support/clock.ts";

const mebibyte = 1024 * 1024;

/**
 * What is open: its kind, and the environment of the tool that it was made with, which no other
 * tool has.
 */
interface Open {
  readonly kind: "tool" | "cold" | "parked" | "template";
  readonly environment: SandboxRequest["environment"];
}

/** What a test may decide and see. */
export class MemoryTechnology {
  /** The present source of every tool. */
  code = "first";
  /** Ways that tools cannot be made ready by. */
  readonly unfit = new Set<IdleStartMode>();
  /** What making a sandbox or a template ahead fails with, until it is taken back. */
  failure: Error | undefined;
  /** Milliseconds that loading the code takes, and making a sandbox from a template. */
  loadMs = 0;
  forkMs = 0;
  /** Whether the language has a way to, and the technology any. */
  languageKnows: readonly IdleStartMode[] = ["pool", "template"];
  canAhead = true;
  /** What a call's report says of the end of its sandbox. */
  ending: Promise<void> | undefined;
  parkedBytes = 4 * mebibyte;
  templateBytes = 16 * mebibyte;
  /** Everything that is open, by what it is. */
  readonly open = new Map<object, Open>();
  /** Uses that contracts forbid. */
  readonly violations: string[] = [];
  /** How often each was begun to be made. */
  readonly begun = { cold: 0, pool: 0, template: 0, fork: 0 };
  /** The most that were being made ahead at once. */
  mostAtOnce = 0;
  readonly #clock: Pick<Clock, "sleep">;
  readonly #ends = new Map<object, () => void>();
  #making = 0;

  constructor(clock: Pick<Clock, "sleep">) {
    this.#clock = clock;
  }

  /** How many are open of a kind. */
  count(kind: Open["kind"]): number {
    return [...this.open.values()].filter((other) => other.kind === kind).length;
  }

  /** Ends processes of a kind as if they had crashed. */
  crash(kind: "parked" | "template"): void {
    for (const [thing, other] of this.open) if (other.kind === kind) this.#ends.get(thing)?.();
  }

  /** Key of the packages of every tool. */
  installation: string | undefined;

  readonly runner: Pick<ToolRunner, "prepare" | "installationKeyOf"> = {
    installationKeyOf: () => this.installation,
    prepare: async () => {
      const tool = {};
      const environment = new Map<string, string>();
      this.open.set(tool, { kind: "tool", environment });
      const argv = (way: string): Launch => ({ argv: [way] });
      return {
        mounts: [],
        environment,
        launch: argv("cold"),
        ...(this.languageKnows.includes("pool") && { park: argv("pool") }),
        ...(this.languageKnows.includes("template") && { template: argv("template") }),
        memoryBound: "resident" as const,
        toolsPath: "/tools",
        [Symbol.asyncDispose]: () => this.#close(tool),
      };
    },
  };

  async acquire(request: SandboxRequest, signal: AbortSignal): Promise<Sandbox> {
    signal.throwIfAborted();
    this.begun.cold++;
    const sandbox = {
      ...this.#body(request),
      start: async () => execution(this.code),
      [Symbol.asyncDispose]: () => this.#close(sandbox),
    };
    this.open.set(sandbox, { kind: "cold", environment: request.environment });
    return sandbox;
  }

  aheadOf(): AheadOfCalls | undefined {
    if (!this.canAhead) return undefined;
    return {
      park: async (request, { argv }, signal) => {
        if (argv[0] !== "pool") this.violations.push(`parked with ${argv[0]}`);
        this.begun.pool++;
        const code = await this.#load("pool", signal);
        return this.#parked(request, code);
      },
      openTemplate: async (request, { argv }, signal) => {
        if (argv[0] !== "template") this.violations.push(`template started with ${argv[0]}`);
        this.begun.template++;
        const code = await this.#load("template", signal);
        return this.#template(request, code);
      },
    };
  }

  #template(request: SandboxRequest, code: string): Template {
    const { promise: lost, resolve } = Promise.withResolvers<void>();
    const children = new Map<object, Promise<void>>();
    let isEnded = false;
    // The kernel ends the processes of its sandboxes with it.
    const end = (): void => {
      isEnded = true;
      for (const child of children.keys()) this.#ends.get(child)?.();
      resolve();
    };
    const template = {
      lost,
      privateBytes: this.templateBytes,
      park: async (signal: AbortSignal) => {
        if (!this.open.has(template)) this.violations.push("a template used after its end");
        this.begun.fork++;
        await this.#busy(this.forkMs, signal);
        if (isEnded) throw new SandboxError("a template has ended");
        const closed = Promise.withResolvers<void>();
        const parked = this.#parked(request, code, () => {
          children.delete(parked);
          closed.resolve();
        });
        children.set(parked, closed.promise);
        return parked;
      },
      [Symbol.asyncDispose]: async () => {
        await Promise.all(children.values());
        await this.#close(template);
        end();
      },
    };
    this.open.set(template, { kind: "template", environment: request.environment });
    this.#ends.set(template, end);
    return template;
  }

  #parked(request: SandboxRequest, code: string, onClose?: () => void): ParkedSandbox {
    const { promise: lost, resolve: end } = Promise.withResolvers<void>();
    let state: "waits" | "woken" | "ended" = "waits";
    const parked = {
      ...this.#body(request),
      lost,
      privateBytes: this.parkedBytes,
      wake: async () => {
        if (state !== "waits") throw new SandboxError(`a sandbox that is ${state} was woken`);
        state = "woken";
        return execution(code, this.ending);
      },
      [Symbol.asyncDispose]: async () => {
        state = "ended";
        await this.#close(parked);
        onClose?.();
        end();
      },
    };
    this.open.set(parked, { kind: "parked", environment: request.environment });
    this.#ends.set(parked, () => {
      state = "ended";
      end();
    });
    return parked;
  }

  /** As when a module is imported: what counts is the source at the beginning. */
  async #load(way: IdleStartMode, signal: AbortSignal): Promise<string> {
    const { code } = this;
    await this.#busy(this.loadMs, signal);
    if (this.failure !== undefined) throw this.failure;
    if (this.unfit.has(way)) throw new SandboxError(`unfit for ${way}`, { isUnfit: true });
    return code;
  }

  async #busy(ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#making++;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#making);
    try {
      if (ms > 0) await this.#clock.sleep(ms, signal);
    } finally {
      this.#making--;
    }
  }

  #body({ profile }: SandboxRequest) {
    return {
      backend: profile.backend,
      workDir: { writeArguments: async () => undefined } as unknown as Sandbox["workDir"],
      limits: profile.limits,
      enforcement: {} as Sandbox["enforcement"],
      unenforced: [],
      locate: (path: string) => path,
    };
  }

  /** What ends a process waits for it. */
  async #close(thing: object): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    const closed = this.open.get(thing);
    if (closed === undefined) this.violations.push("something was given back twice");
    this.open.delete(thing);
    const isUsed = [...this.open.values()].some(
      ({ environment }) => environment === closed?.environment,
    );
    if (closed?.kind === "tool" && isUsed)
      this.violations.push("a tool was given back before its sandbox");
  }
}

/** An execution that shows the code that ran on its standard output. */
function execution(code: string, ending?: Promise<void>): Execution {
  const report: ExitReport = {
    started: true,
    exitCode: 0,
    signal: undefined,
    exceeded: undefined,
    usage: { wallMs: 0, cpuMs: 0, peakMemoryBytes: undefined, peakProcesses: undefined },
    stdout: { text: code, droppedBytes: 0 },
    stderr: { text: "", droppedBytes: 0 },
    ...(ending && { ending }),
  };
  const exited = Promise.resolve(report);
  return {
    exited,
    stdin: undefined,
    gateway: undefined,
    stdout: Readable.from([Buffer.from(code)]),
    stderr: Readable.from([]),
    stop: () => exited,
    end: () => undefined,
  };
}
