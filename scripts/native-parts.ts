/**
 * Builds the native parts, of templates and of the worker's sockets inside sandboxes, for every
 * processor and language, with a compiler from PyPI that has the headers of all of them. One build
 * serves glibc and musl: it is linked with neither.
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

/** Builds from the sources in the folder `native` of a directory, which also has their record. */
export interface NativePart {
  readonly directory: string;
  /** Path of each build below the directory, and the names of its sources. */
  readonly builds: readonly {
    readonly path: (processor: Processor) => string;
    readonly sources: readonly string[];
  }[];
}

const common = ["child.c", "isolation.c", "system.c"];
/** By what it is for: templates of each language, and sockets inside sandboxes. */
export const nativeParts = {
  templates: {
    directory: "tool-runner",
    builds: [
      {
        path: ({ arch }) => `node/forks/native/${arch}.node`,
        sources: [...common, "loop.c", "node.c"],
      },
      {
        path: ({ machine }) => `python/tool_runner/forks/native/${machine}.so`,
        sources: [...common, "python.c"],
      },
    ],
  },
  sockets: {
    directory: "worker/sandbox/network",
    builds: [{ path: ({ machine }) => `native/${machine}.so`, sources: ["door.c"] }],
  },
} as const satisfies Record<string, NativePart>;

const compilerFlags = [
  ...["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"],
  // Nothing of a C library but the functions that the sources name.
  ...["-fPIC", "-fno-stack-protector", "-fvisibility=hidden"],
];
/** A function that the program lacks is noticed when the part is loaded. */
const linkerFlags = ["-shared", "-nostdlib", "-Wl,-z,now", "-s"];

const root = join(import.meta.dirname, "..");
const sourcesName = "native";
const recordPath = ({ directory }: NativePart) => join(root, directory, sourcesName, "build.json");

/** Every build of a part, by its path below the part's directory. */
export function buildPaths({ builds }: NativePart): readonly string[] {
  return builds.flatMap(({ path }) => processors.map((processor) => path(processor)));
}

/** SHA-256 of sources and builds, by their paths below the part's directory. */
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
    const directory = await mkdtemp(join(tmpdir(), "native-parts-"));
    const made = new Compiler(directory);
    try {
      await run("python3", ["-m", "pip", "install", "--quiet", "--target", directory, compiler]);
      return made;
    } catch (error) {
      await made[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Builds a part of a copy of this project into another copy, which has all folders. */
  async build(
    part: NativePart,
    from: string,
    into: string,
    wanted: readonly string[] = buildPaths(part),
  ): Promise<void> {
    const cwd = join(from, part.directory, sourcesName);
    for (const { path, sources } of part.builds)
      for (const processor of processors)
        if (wanted.includes(path(processor)))
          await this.#link(processor, cwd, sources, join(into, part.directory, path(processor)));
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

/** The record of a part's files as they are. */
export async function presentRecord(part: NativePart): Promise<BuildRecord> {
  const directory = join(root, part.directory);
  const names = await readdir(join(directory, sourcesName));
  const sources = names.filter((name) => /\.[ch]$/.test(name)).map((name) => `native/${name}`);
  const digests = [...sources, ...buildPaths(part)].toSorted().map(async (path) => {
    const bytes = await readFile(join(directory, path));
    return [path, createHash("sha256").update(bytes).digest("hex")] as const;
  });
  return { compiler, files: Object.fromEntries(await Promise.all(digests)) };
}

/** The record of its last build. */
export async function lastRecord(part: NativePart): Promise<BuildRecord> {
  return JSON.parse(await readFile(recordPath(part), "utf8")) as BuildRecord;
}

if (import.meta.main) {
  await using installed = await Compiler.install();
  for (const part of Object.values(nativeParts)) {
    await installed.build(part, root, root);
    const record = JSON.stringify(await presentRecord(part), undefined, 2);
    await writeFile(recordPath(part), `${record}\n`);
  }
}
