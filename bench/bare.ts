/**
 * Rows without a tool: a program that does nothing, bare, in a sandbox, and in one with all that we
 * add.
 */
import { join } from "node:path";
import { bwrapOptions } from "../worker/sandbox/bubblewrap/argv.ts";
import { type BubblewrapBackend, openBubblewrap } from "../worker/sandbox/bubblewrap/backend.ts";
import { encodeArgs } from "../worker/sandbox/bubblewrap/process.ts";
import { type Profile, builtInProfiles } from "../worker/sandbox/profile.ts";
import type { ReadOnlyMount } from "../worker/sandbox/sandbox.ts";
import { startSubprocess } from "../worker/sandbox/subprocess.ts";
import { systemClock } from "../worker/support/clock.ts";
import { newId } from "../worker/support/ids.ts";
import { sandboxUid } from "./environment.ts";
import { openFloor } from "./floor.ts";
import { type Row, inFlight, timed } from "./measure.ts";
import { floorRow, hardeningRows } from "./names.ts";

/** Rows, and what they need. The caller disposes it. */
export interface BareRows extends AsyncDisposable {
  readonly rows: readonly Row[];
  /** What the hardened sandboxes have of control groups, and how long they take to join one. */
  readonly controlGroups: string;
}

/** The interpreter of a language, as its tools' sandboxes have it. */
export interface Interpreter {
  readonly program: string;
  readonly mounts: readonly ReadOnlyMount[];
}

/** Opens what the rows need, in directories below `base`. */
export async function openBareRows(
  base: string,
  interpreters: { readonly python: Interpreter; readonly node: Interpreter },
): Promise<BareRows> {
  await using owned = new AsyncDisposableStack();
  const floor = owned.use(await openFloor(inFlight));
  const hardened = owned.use(await openSandboxes(base, false));
  const guarded = owned.use(await openSandboxes(base, true));
  const { python, node } = interpreters;
  const rows: readonly (readonly [string, () => Promise<void>])[] = [
    ["bwrap + true", () => runInSandbox(base, ["/usr/bin/true"], [])],
    [hardeningRows.from, () => runPlainly(base)],
    [hardeningRows.to, () => runHardened(hardened)],
    [hardeningRows.toByGuard, () => runHardened(guarded)],
    ["bwrap + python", () => runInSandbox(base, [python.program, "-c", "pass"], python.mounts)],
    ["bwrap + node", () => runInSandbox(base, [node.program, "-e", "0"], node.mounts)],
  ];
  const all = owned.move();
  return {
    rows: [
      { name: floorRow, kind: "floor", run: async () => ({ elapsedMs: await floor.run() }) },
      ...rows.map(([name, run]): Row => {
        const runOnce = timed(async () => {
          await run();
          return undefined;
        });
        return { name, kind: "floor", run: runOnce };
      }),
    ],
    controlGroups: describeGroups(hardened),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** The profile that all rows have. */
export function standardProfile(): Profile {
  const profile = builtInProfiles.get("standard");
  if (profile === undefined) throw new Error("no standard profile");
  return profile;
}

/**
 * Sandboxes as a worker has them, or as it has them where there are no control groups. The caller
 * disposes them.
 */
export function openSandboxes(base: string, withoutCgroups: boolean): Promise<BubblewrapBackend> {
  const report = (error: unknown): void => console.error(error);
  return openBubblewrap({
    bwrapBin: "/usr/bin/bwrap",
    workBase: join(base, withoutCgroups ? "guarded" : "hardened"),
    uid: sandboxUid,
    clock: systemClock,
    newId,
    withoutCgroups,
    onRemoveFailed: report,
    onGuardLost: report,
  });
}

function describeGroups({ cgroups: found }: BubblewrapBackend): string {
  if (found?.cgroups === undefined) return "no control groups";
  const { description, joinMs } = found.cgroups;
  return `${description}, joined in ${joinMs.toFixed(1)} ms`;
}

/**
 * A sandbox of ours with all that belongs to it, from acquisition to the removal of its work
 * directory.
 */
async function runHardened(backend: BubblewrapBackend): Promise<void> {
  const { signal } = new AbortController();
  const request = {
    profile: standardProfile(),
    memoryBound: "address-space",
    mounts: [],
    devices: [],
    environment: new Map([["PATH", "/usr/bin"]]),
  } as const;
  await using sandbox = await backend.acquire(request, signal);
  const execution = await sandbox.start({ argv: ["/usr/bin/true"] });
  const { exitCode, stderr } = await execution.exited;
  if (exitCode !== 0) throw new Error(stderr.text);
}

/**
 * The command line of the design document, section 7, for the profile `standard`: what hardening is
 * compared with.
 */
async function runPlainly(workDir: string): Promise<void> {
  const namespaces = ["--unshare-pid", "--unshare-ipc", "--unshare-uts"];
  const files = ["--ro-bind", "/", "/", "--tmpfs", "/tmp", "--bind", workDir, workDir];
  await runBwrap([
    ...["--die-with-parent", "--new-session", ...namespaces, ...files, "--chdir", workDir],
    ...["--", "/usr/bin/true"],
  ]);
}

/**
 * bubblewrap with the standard profile's options, and nothing of ours around it: no limits, no
 * filter, no clean-up.
 */
async function runInSandbox(
  workDir: string,
  command: readonly string[],
  mounts: readonly ReadOnlyMount[],
): Promise<void> {
  const options = bwrapOptions({
    profile: standardProfile(),
    proc: "fresh",
    limitsNested: true,
    namesHost: true,
    systemDirectories: ["bin", "sbin", "lib", "lib64"].map((name) => ({
      path: `/${name}`,
      linkTarget: `usr/${name}`,
    })),
    workDir,
    mounts,
    devices: [],
    environment: new Map([["PATH", "/usr/bin"]]),
  });
  await runBwrap(["--args", "3", "--", ...command], [encodeArgs(options)]);
}

async function runBwrap(argv: readonly string[], inputs: readonly string[] = []): Promise<void> {
  const child = await startSubprocess({
    file: "/usr/bin/bwrap",
    argv,
    env: {},
    uid: sandboxUid,
    inputs,
  });
  const { exitCode } = await child.exited;
  await child.closed;
  if (exitCode !== 0) throw new Error(`${argv.join(" ")}: ${child.output().stderr.text}`);
}
