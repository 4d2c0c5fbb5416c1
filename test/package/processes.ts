/**
 * Runs programs as a user would: no npm variables, and not the Node that npm scripts put first on
 * the path.
 */
import { execFile, execFileSync, type ExecFileException } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import type { TestContext } from "vitest";

export const root = dirname(dirname(import.meta.dirname));

/** The project's own Node, which runs these tests. */
export const ownNode = join(root, "node_modules", "node", "bin", "node");

/** The npm package that holds nothing but Node's program for this machine. */
export const nodePackage = `node-${process.platform}-${process.arch}`;

export interface Ending {
  readonly status: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * How a program is run: in the project's root, as a user, for three minutes, unless said otherwise.
 */
export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  readonly timeoutMs?: number;
}

const usualTimeoutMs = 180_000;

/** The environment of a user's shell, for child processes. */
export function userEnvironment(extra: Record<string, string> = {}): Record<string, string> {
  const kept = Object.entries(process.env).flatMap(([name, value]): [string, string][] =>
    value === undefined || /^(npm_.*|VITEST.*|NODE|NODE_ENV|NODE_OPTIONS|INIT_CWD)$/.test(name)
      ? []
      : [[name, value]],
  );
  return { ...Object.fromEntries(kept), PATH: userPath().join(delimiter), ...extra };
}

/** Runs a program to its end, whatever its exit code. Rejects when it cannot be started. */
export function run(
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<Ending> {
  return new Promise((resolve, reject) => {
    const { cwd = root, env = userEnvironment(), timeoutMs = usualTimeoutMs } = options;
    const ended = (error: ExecFileException | null, stdout: string, stderr: string): void => {
      if (typeof error?.code === "string") {
        reject(new Error(`cannot start ${command}`, { cause: error }));
      } else resolve({ status: statusOf(error), signal: error?.signal ?? null, stdout, stderr });
    };
    const child = execFile(command, [...args], { cwd, env, timeout: timeoutMs }, ended);
    child.stdin?.end();
  });
}

/** Like `run`, but rejects with the program's output when it fails. */
export async function runWell(...call: Parameters<typeof run>): Promise<Ending> {
  const ending = await run(...call);
  if (ending.status === 0) return ending;
  const { status, signal, stdout, stderr } = ending;
  const end = `failed by ${signal ?? status}`;
  throw new Error(`${call[0]} ${call[1].join(" ")} ${end}:\n${stdout}${stderr}`);
}

/** A Node older than 24 as the machine's users have it; skips the test where there is none. */
export function olderNode(skip: TestContext["skip"]): string {
  foundOlder ??= userPath()
    .map((directory) => join(directory, "node"))
    .find((node) => existsSync(node) && majorOf(node) < 24);
  return foundOlder ?? skip("no Node older than 24 is on the PATH of this machine");
}

/** Asked for once. */
let foundOlder: string | undefined;

function userPath(): readonly string[] {
  return (process.env["PATH"] ?? "")
    .split(delimiter)
    .filter((directory) => !directory.includes("node_modules"));
}

function majorOf(node: string): number {
  return Number.parseInt(execFileSync(node, ["-p", "process.versions.node"], { encoding: "utf8" }));
}

function statusOf(error: ExecFileException | null): number | null {
  if (error === null) return 0;
  return typeof error.code === "number" ? error.code : null;
}
