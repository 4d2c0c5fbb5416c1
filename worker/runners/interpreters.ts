/**
 * The interpreters of one language: the usual one, and those that tools name, each opened when the
 * first tool needs it.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import type { Refusal } from "../protocol/refusal.ts";
import { SandboxError } from "../sandbox/sandbox.ts";
import type { CodeSource } from "./runner.ts";

/** What interpreters are made with. */
export interface InterpretersOptions<T extends OpenInterpreter> {
  /** Of tools that name none; owned by the interpreters from now on. */
  readonly usual: T;
  /** Variable that allows others. */
  readonly variable: string;
  /** These: programs on the host, by the names that the manifest uses. */
  readonly named: ReadonlyMap<string, string> | undefined;
  /** Opens one of these. Throws SandboxError. */
  readonly open: (program: string, name: string) => Promise<T>;
}

/** An interpreter as a runner needs it. */
export interface OpenInterpreter extends AsyncDisposable {
  /** Program on the host. */
  readonly program: string;
  readonly version: string;
  /** What may change of it. */
  readonly sources: readonly CodeSource[];
}

/** Names that promise a version: the program has to keep it. */
const versionName = /^\d+(?:\.\d+)*$/;

/** Interpreters of one language. Its owner disposes it after the last sandbox. */
export class Interpreters<T extends OpenInterpreter> implements AsyncDisposable {
  readonly #options: InterpretersOptions<T>;
  readonly #named: ReadonlyMap<string, string>;
  /** By their programs, and by their names where these find the program. */
  readonly #opening = new Map<string, Promise<T>>();
  readonly #opened: T[];

  constructor(options: InterpretersOptions<T>) {
    this.#options = options;
    this.#named = options.named ?? new Map();
    this.#opened = [options.usual];
  }

  /** Of all that are open. */
  get sources(): readonly CodeSource[] {
    return this.#opened.flatMap(({ sources }) => sources);
  }

  /** The interpreter of a tool. Throws SandboxError for one that is not allowed, or not usable. */
  async of({ interpreter: wanted }: Pick<ToolEntry, "interpreter">): Promise<T> {
    const { usual, variable } = this.#options;
    if (wanted === undefined) return usual;
    const isPath = wanted.startsWith("/");
    const program = isPath ? this.#allowedPath(wanted) : this.#named.get(wanted);
    if (program === undefined) {
      if (!isPath && isVersion(usual, wanted)) return usual;
      const names = [...this.#named.keys()].join(", ");
      const allowed = names === "" ? "is not set" : `allows ${names}`;
      throw new SandboxError(`interpreter "${wanted}" is not allowed: ${variable} ${allowed}`);
    }
    const found = await this.#openOnce(program, wanted);
    if (!versionName.test(wanted) || isVersion(found, wanted)) return found;
    throw new SandboxError(
      `${variable} has ${found.program} for ${wanted}, but its version is ${found.version}`,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#opening.values());
    await Promise.all(this.#opened.map((each) => each[Symbol.asyncDispose]()));
  }

  #allowedPath(path: string): string | undefined {
    const isAllowed = [this.#options.usual.program, ...this.#named.values()].includes(path);
    return isAllowed ? path : undefined;
  }

  #openOnce(program: string, name: string): Promise<T> {
    const { usual, open } = this.#options;
    if (program === usual.program) return Promise.resolve(usual);
    const key = program.startsWith("/") ? program : name;
    const known = this.#opening.get(key);
    if (known !== undefined) return known;
    const opening = open(program, name).then(
      (opened) => {
        this.#opened.push(opened);
        return opened;
      },
      (error: unknown) => {
        // It may be installed later: the next check of the tool tries again.
        this.#opening.delete(key);
        throw error;
      },
    );
    this.#opening.set(key, opening);
    return opening;
  }
}

/** Why a tool cannot be served, where its interpreter is not allowed or not usable. */
export async function refuseInterpreter(
  interpreters: Interpreters<OpenInterpreter>,
  tool: ToolEntry,
): Promise<Refusal | undefined> {
  try {
    await interpreters.of(tool);
    return undefined;
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    return { reason: error.message, publicReason: "the worker has no such interpreter" };
  }
}

function isVersion({ version }: OpenInterpreter, wanted: string): boolean {
  return version === wanted || version.startsWith(`${wanted}.`);
}
