/**
 * One Python interpreter as sandboxes see it.
 */
import { join, sep } from "node:path";
import type { ReadOnlyMount, SandboxBackend } from "../../sandbox/sandbox.ts";
import { insidePaths } from "../inside-paths.ts";
import type { OpenInterpreter } from "../interpreters.ts";
import {
  type PreparedPython,
  type PythonHostOptions,
  makePythonEnvironment,
  preparePython,
} from "./host.ts";
import type { CodeSource, Interpreter } from "../runner.ts";
import { isSystemPath } from "../../support/files/system-paths.ts";

/** What it is opened with. */
export interface PythonInterpreterOptions extends PythonHostOptions {
  readonly backend: Pick<SandboxBackend, "share">;
  /** Of the same options, where it was started before. */
  readonly prepared?: Promise<PreparedPython> | undefined;
}

/** Program and mounts of a tool. */
export interface PythonProgram {
  /** Inside. */
  readonly executable: string;
  readonly mounts: readonly ReadOnlyMount[];
}

/** An interpreter. Its owner disposes it after the last sandbox. */
export class PythonInterpreter implements OpenInterpreter {
  readonly program: string;
  readonly version: string;
  readonly facts: PreparedPython["facts"];
  readonly sources: readonly CodeSource[];
  /** For tools that see what is installed for it. */
  readonly plain: PythonProgram;
  readonly #scratchDir: string;
  /** Its directories outside /usr (venv, pyenv, /opt), and what of the host they are. */
  readonly #directories: readonly ReadOnlyMount[];
  readonly #shared: AsyncDisposableStack;
  #isolated: Promise<PythonProgram> | undefined;

  /** Asks the program, compiles the tool runner and shares its directories. Throws SandboxError. */
  static async open(options: PythonInterpreterOptions): Promise<PythonInterpreter> {
    const { facts, compiledDir } = await (options.prepared ?? preparePython(options));
    await using shared = new AsyncDisposableStack();
    const directories: ReadOnlyMount[] = [];
    for (const target of outermost(facts.directories.filter((path) => !isSystemPath(path)))) {
      // Shared once: an interpreter does not change under a running worker, and has tens of
      // thousands of files.
      const { source } = shared.use(await options.backend.share(target));
      directories.push({ source, target });
    }
    return new PythonInterpreter(options, facts, compiledDir, directories, shared.move());
  }

  private constructor(
    { pythonBin, scratchDir }: PythonInterpreterOptions,
    facts: PreparedPython["facts"],
    compiledDir: string,
    directories: readonly ReadOnlyMount[],
    shared: AsyncDisposableStack,
  ) {
    this.program = pythonBin;
    this.version = facts.version;
    this.facts = facts;
    this.#scratchDir = scratchDir;
    this.#directories = directories;
    this.#shared = shared;
    const { executable, installed, added } = facts;
    this.sources = [
      ...added.map((path) => ({ path, depth: "tree" as const })),
      ...[executable, ...installed].map((path) => ({ path, depth: "listing" as const })),
    ];
    const runner = { source: compiledDir, target: insidePaths.runner };
    this.plain = { executable, mounts: [...directories, runner] };
  }

  /** For tools with packages of their own, which see nothing else. Throws SandboxError. */
  isolated(): Promise<PythonProgram> {
    this.#isolated ??= this.#isolate().catch((error: unknown) => {
      this.#isolated = undefined;
      throw error;
    });
    return this.#isolated;
  }

  /** For what installs packages. */
  get described(): Interpreter {
    const { base, executable: program, identity } = this.facts;
    return { executable: base, program, mounts: this.#directories, identity };
  }

  /** A directory of it that a mount at `target` would cover, hold, or lie in. */
  directoryAt(target: string): string | undefined {
    const found = this.plain.mounts.find(
      (own) => own.target === target || isBelow(own.target, target) || isBelow(target, own.target),
    );
    return found?.target;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#shared.disposeAsync();
  }

  async #isolate(): Promise<PythonProgram> {
    const directory = join(this.#scratchDir, "python-environment");
    await makePythonEnvironment(this.facts, directory);
    const mount = { source: directory, target: insidePaths.pythonEnvironment };
    return {
      executable: join(insidePaths.pythonEnvironment, "bin", "python3"),
      mounts: [...this.plain.mounts, mount],
    };
  }
}

/** The paths that lie in no other of them. */
function outermost(paths: readonly string[]): readonly string[] {
  const unique = [...new Set(paths)];
  return unique.filter((path) => !unique.some((other) => other !== path && isBelow(path, other)));
}

function isBelow(path: string, directory: string): boolean {
  return path.startsWith(directory + sep);
}
