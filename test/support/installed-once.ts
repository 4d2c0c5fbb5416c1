/**
 * What tests install: once on a machine, and used by later runs as it is.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TestContext } from "vitest";
import { slowPlace } from "./sandboxes/quick-place.ts";

const run = promisify(execFile);

/** Something that this machine cannot install, as without network or toolchain. */
export class NotInstalled extends Error {
  constructor(message: string) {
    super(message);
    this.name = "NotInstalled";
  }
}

/** An installer's command. */
export interface Installation {
  /** For errors. */
  readonly title: string;
  /** Whatever decides what is installed. */
  readonly key: unknown;
  readonly timeoutMs: number;
  /** The program and its arguments, by the directory to fill. */
  readonly command: (directory: string) => readonly string[];
  /** By the directory, too. */
  readonly variables?: (directory: string) => Readonly<Record<string, string>>;
}

/** The directory that was filled. Rejects with NotInstalled. */
export async function installedOnce(installation: Installation): Promise<string> {
  const { title, key, timeoutMs, command, variables } = installation;
  const digest = createHash("sha256").update(JSON.stringify(key)).digest("hex");
  const directory = join(slowPlace, `str-test-packages-${digest.slice(0, 16)}`);
  if (existsSync(directory)) return directory;
  const fresh = await mkdtemp(`${directory}-`);
  try {
    const [program = "", ...argv] = command(fresh);
    const env = { ...process.env, ...variables?.(fresh) };
    await run(program, argv, { timeout: timeoutMs, env }).catch((error: unknown) => {
      const said = (error as { stderr?: string }).stderr || String(error);
      throw new NotInstalled(`${title} cannot be installed: ${said.trim().split("\n").at(-1)}`);
    });
    await chmod(fresh, 0o755);
    // Another run may have been faster.
    await rename(fresh, directory).catch(() => undefined);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  return directory;
}

/** What is installed. Skips the test where it is not. */
export async function installedOrSkipped<T>(
  { skip }: Pick<TestContext, "skip">,
  installing: Promise<T>,
): Promise<T> {
  try {
    return await installing;
  } catch (error) {
    if (!(error instanceof NotInstalled)) throw error;
    return skip(error.message);
  }
}
