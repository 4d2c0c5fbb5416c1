/**
 * Builds the addon of `tool-runner/node/forks/native` for every processor, with a compiler from
 * PyPI that has the headers of all of them. One build serves glibc and musl: it is linked with
 * neither.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Its version decides the bytes of a build. */
const compiler = "ziglang==0.17.1";
/** By the name that Node has for a processor. The version is that of the headers. */
const targets = { x64: "x86_64-linux-gnu.2.28", arm64: "aarch64-linux-gnu.2.28" } as const;

const compilerFlags = [
  ...["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"],
  // Nothing of a C library but the functions that the sources name.
  ...["-fPIC", "-fno-stack-protector", "-fvisibility=hidden"],
];
/** A function that the program lacks is noticed when the addon is loaded. */
const linkerFlags = ["-shared", "-nostdlib", "-Wl,-z,now", "-s"];

export const addonDirectory = join(import.meta.dirname, "../tool-runner/node/forks/native");
const recordName = "build.json";

/** What was built of what, by names of files: SHA-256 of their bytes. */
export interface BuildRecord {
  readonly compiler: string;
  readonly files: Readonly<Record<string, string>>;
}

/** Builds into a directory: a file for each processor. */
export async function buildAddon(into: string): Promise<void> {
  const scratch = await mkdtemp(join(tmpdir(), "fork-addon-"));
  try {
    const packages = join(scratch, "compiler");
    const pip = ["-m", "pip", "install", "--quiet", "--target", packages, compiler];
    await run("python3", pip);
    const zig = (...argv: readonly string[]) =>
      run("python3", ["-m", "ziglang", "cc", ...argv], {
        cwd: addonDirectory,
        env: { ...process.env, PYTHONPATH: packages },
      });
    const sources = (await readdir(addonDirectory)).filter((name) => name.endsWith(".c"));
    for (const [processor, target] of Object.entries(targets)) {
      const objects = sources.toSorted().map((name) => [name, join(scratch, `${name}.o`)] as const);
      for (const [source, object] of objects)
        await zig("-target", target, "-c", ...compilerFlags, "-o", object, source);
      const output = join(into, `${processor}.node`);
      const paths = objects.map(([, object]) => object);
      await zig("-target", target, ...linkerFlags, "-o", output, ...paths);
    }
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** The record of the files as they are. */
export async function presentRecord(): Promise<BuildRecord> {
  const names = (await readdir(addonDirectory)).filter((name) => name !== recordName);
  const digests = await Promise.all(
    names.toSorted().map(async (name) => [name, digestOf(await readFile(pathOf(name)))] as const),
  );
  return { compiler, files: Object.fromEntries(digests) };
}

/** The record of the last build. */
export async function lastRecord(): Promise<BuildRecord> {
  return JSON.parse(await readFile(pathOf(recordName), "utf8")) as BuildRecord;
}

function pathOf(name: string): string {
  return join(addonDirectory, name);
}

function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

if (import.meta.main) {
  await buildAddon(addonDirectory);
  await writeFile(pathOf(recordName), `${JSON.stringify(await presentRecord(), undefined, 2)}\n`);
}
