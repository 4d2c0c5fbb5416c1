/**
 * Builds the native part of templates, `tool-runner/native`, for every processor and language, with
 * a compiler from PyPI that has the headers of all of them. One build serves glibc and musl: it is
 * linked with neither.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Its version decides the bytes of a build. */
export const compiler = "ziglang==0.17.1";
/** Names of a processor: Node's, and that of the compiler and of uname(2). */
const processors = [
  { arch: "x64", machine: "x86_64" },
  { arch: "arm64", machine: "aarch64" },
] as const;
type Processor = (typeof processors)[number];

/** Whose headers are used, and their version. */
const system = "linux-gnu.2.28";

const common = ["child.c", "isolation.c", "system.c"];
/** What a language loads, below `tool-runner`, and its sources. */
const builds = [
  {
    path: ({ arch }: Processor) => `node/forks/native/${arch}.node`,
    sources: [...common, "loop.c", "node.c"],
  },
  {
    path: ({ machine }: Processor) => `python/tool_runner/forks/native/${machine}.so`,
    sources: [...common, "python.c"],
  },
];

const compilerFlags = [
  ...["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"],
  // Nothing of a C library but the functions that the sources name.
  ...["-fPIC", "-fno-stack-protector", "-fvisibility=hidden"],
];
/** A function that the program lacks is noticed when the part is loaded. */
const linkerFlags = ["-shared", "-nostdlib", "-Wl,-z,now", "-s"];

/** Of this checkout: the runners of all languages. */
export const runnersDirectory = join(import.meta.dirname, "../tool-runner");
const sourcesName = "native";
const recordPath = join(runnersDirectory, sourcesName, "build.json");

/** Every build, by its path below `tool-runner`. */
export const buildPaths: readonly string[] = builds.flatMap(({ path }) =>
  processors.map((processor) => path(processor)),
);

/** SHA-256 of sources and builds, by their paths below `tool-runner`. */
export interface BuildRecord {
  readonly compiler: string;
  readonly files: Readonly<Record<string, string>>;
}

/** A compiler in a directory of its own, removed when it is disposed. */
export class Compiler implements AsyncDisposable {
  readonly #directory: string;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** Installs it, from PyPI. */
  static async install(): Promise<Compiler> {
    const directory = await mkdtemp(join(tmpdir(), "fork-addon-"));
    const made = new Compiler(directory);
    try {
      await run("python3", ["-m", "pip", "install", "--quiet", "--target", directory, compiler]);
      return made;
    } catch (error) {
      await made[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Builds the sources of a copy of `tool-runner` into another copy, which has all folders. */
  async build(from: string, into: string, wanted: readonly string[] = buildPaths): Promise<void> {
    for (const { path, sources } of builds)
      for (const processor of processors)
        if (wanted.includes(path(processor)))
          await this.#link(
            processor,
            join(from, sourcesName),
            sources,
            join(into, path(processor)),
          );
  }

  async #link(
    { machine }: Processor,
    cwd: string,
    sources: readonly string[],
    output: string,
  ): Promise<void> {
    const scratch = await mkdtemp(join(this.#directory, "objects-"));
    const env = { ...process.env, PYTHONPATH: this.#directory };
    const zig = (argv: readonly string[]) => {
      const target = ["-target", `${machine}-${system}`];
      return run("python3", ["-m", "ziglang", "cc", ...target, ...argv], { cwd, env });
    };
    const objects = sources.map((name) => [name, join(scratch, `${name}.o`)] as const);
    for (const [source, object] of objects)
      await zig(["-c", ...compilerFlags, "-o", object, source]);
    await zig([...linkerFlags, "-o", output, ...objects.map(([, object]) => object)]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true });
  }
}

/** The record of the files as they are. */
export async function presentRecord(): Promise<BuildRecord> {
  const names = await readdir(join(runnersDirectory, sourcesName));
  const sources = names.filter((name) => /\.[ch]$/.test(name)).map((name) => `native/${name}`);
  const digests = [...sources, ...buildPaths].toSorted().map(async (path) => {
    const bytes = await readFile(join(runnersDirectory, path));
    return [path, createHash("sha256").update(bytes).digest("hex")] as const;
  });
  return { compiler, files: Object.fromEntries(await Promise.all(digests)) };
}

/** The record of the last build. */
export async function lastRecord(): Promise<BuildRecord> {
  return JSON.parse(await readFile(recordPath, "utf8")) as BuildRecord;
}

if (import.meta.main) {
  await using installed = await Compiler.install();
  await installed.build(runnersDirectory, runnersDirectory);
  await writeFile(recordPath, `${JSON.stringify(await presentRecord(), undefined, 2)}\n`);
}
