/**
 * One Node program: as the host has it, and as sandboxes see it.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { type ReadOnlyMount, type SandboxBackend, SandboxError } from "../../sandbox/sandbox.ts";
import { insidePaths } from "../inside-paths.ts";
import type { OpenInterpreter } from "../interpreters.ts";
import type { CodeSource, Interpreter } from "../runner.ts";
import { isSystemPath } from "../../support/files/system-paths.ts";

const run = promisify(execFile);

/** Milliseconds the interpreter may take to answer a question about itself. */
const questionTimeoutMs = 30_000;
/** The first version that runs TypeScript as it is and starts the runner's modules. */
const leastMajor = 24;

const nodeFacts = z.object({ version: z.string(), executable: z.string() });

/** Version and real path of a Node program. */
type NodeFacts = z.infer<typeof nodeFacts>;

const aboutItself =
  "JSON.stringify({ version: process.versions.node, executable: process.execPath })";

/** A Node program. Its owner disposes it after the last sandbox. */
export class NodeProgram implements OpenInterpreter {
  readonly program: string;
  readonly version: string;
  readonly sources: readonly CodeSource[];
  /** The program inside. */
  readonly executable: string;
  readonly mounts: readonly ReadOnlyMount[];
  /** On the host. */
  readonly hostExecutable: string;
  readonly #shared: AsyncDisposable | undefined;
  #described: Promise<Interpreter> | undefined;

  /** Asks the program who it is. Throws SandboxError. */
  static async open(program: string, backend: Pick<SandboxBackend, "share">): Promise<NodeProgram> {
    const facts = await askNode(program);
    if (isSystemPath(facts.executable)) return new NodeProgram(program, facts, undefined);
    // Shared once: it does not change under a running worker.
    const shared = await backend.share(facts.executable);
    return new NodeProgram(program, facts, shared);
  }

  private constructor(
    program: string,
    facts: NodeFacts,
    shared: (AsyncDisposable & { readonly source: string }) | undefined,
  ) {
    this.program = program;
    this.version = facts.version;
    this.sources = [{ path: facts.executable, depth: "listing" }];
    this.hostExecutable = facts.executable;
    this.#shared = shared;
    // The program alone: what lies beside it is nobody's business.
    this.executable =
      shared === undefined ? facts.executable : join(insidePaths.interpreter, "node");
    this.mounts = shared === undefined ? [] : [{ source: shared.source, target: this.executable }];
  }

  /** For what installs packages, with npm beside the program. Throws SandboxError. */
  describe(): Promise<Interpreter> {
    this.#described ??= this.#describe().catch((error: unknown) => {
      this.#described = undefined;
      throw error;
    });
    return this.#described;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#shared?.[Symbol.asyncDispose]();
  }

  async #describe(): Promise<Interpreter> {
    const { hostExecutable: executable } = this;
    const mounts = this.mounts.map(({ source }) => ({ source, target: executable }));
    return { executable, program: executable, mounts, identity: await identify(executable) };
  }
}

/** Who a Node program is. Throws SandboxError, also for a version that is too old. */
async function askNode(nodeBin: string): Promise<NodeFacts> {
  const { execPath, versions } = process;
  // Saves a process: usually the tools' program is the worker's own.
  const isOwn = nodeBin === execPath;
  const facts = isOwn ? { version: versions.node, executable: execPath } : await ask(nodeBin);
  if (Number.parseInt(facts.version) >= leastMajor) return facts;
  throw new SandboxError(
    `${nodeBin} is Node ${facts.version}; tools need Node ${leastMajor} or later`,
    { setting: "nodeBin" },
  );
}

const identity = `
process.report.excludeNetwork = true;
const libc = process.report.getReport().header.glibcVersionRuntime === undefined ? "musl" : "glibc";
const { version, platform, arch, versions } = process;
console.log(["node", version, "abi" + versions.modules, platform, arch, libc].join("-"));`;

/** See Interpreter. Throws SandboxError. */
async function identify(nodeBin: string): Promise<string> {
  return await run(nodeBin, ["--eval", identity], { env: {}, cwd: "/", timeout: questionTimeoutMs })
    .then(({ stdout }) => stdout.trim())
    .catch((error: unknown) => {
      throw new SandboxError(`cannot ask ${nodeBin} for its identity`, { cause: error });
    });
}

async function ask(nodeBin: string): Promise<NodeFacts> {
  return await run(nodeBin, ["--print", aboutItself], {
    env: {},
    cwd: "/",
    timeout: questionTimeoutMs,
  })
    .then(({ stdout }) => nodeFacts.parse(JSON.parse(stdout)))
    .catch((error: unknown) => {
      throw new SandboxError(`cannot use ${nodeBin} as the Node program`, {
        cause: error,
        setting: "nodeBin",
      });
    });
}
