/**
 * What the sandbox tests need of the host: directories that a sandbox can reach, real backends, and
 * looks at what this process and others have open.
 */
import { firstPrivateDirectory } from "../../../worker/sandbox/path-permissions.ts";
import { execFile } from "node:child_process";
import { chmod, mkdtemp, readFile, readdir, readlink, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { type TestContext, onTestFinished, vi } from "vitest";
import {
  type BubblewrapBackend,
  type BubblewrapOptions,
  openBubblewrap,
} from "../../../worker/sandbox/bubblewrap/backend.ts";
import { readStat } from "../../../worker/sandbox/proc/stat.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import type {
  BackendOptions,
  ExitReport,
  Launch,
  Sandbox,
  SandboxBackend,
  SandboxRequest,
} from "../../../worker/sandbox/sandbox.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { newId } from "../../../worker/support/ids.ts";
import { patience } from "../../support/patience.ts";
import { quickPlace } from "../../support/sandboxes/quick-place.ts";
import { type WhenOver, shared } from "../../support/shared.ts";
import { isRoot } from "../../support/is-root.ts";
import { sharedPreparations } from "../../support/workers/shared-preparations.ts";

const run = promisify(execFile);

const bwrapBin = "/usr/bin/bwrap";

export const never = new AbortController().signal;

/**
 * Whether the tests run as root: then sandboxes get a user id of their own, as the worker does it.
 */
/** The host user id of sandboxes. */
export const sandboxUid = isRoot ? 60_001 : undefined;

/** Skips a test that only root can carry out. */
export function requireRoot(context: TestContext): void {
  context.skip(!isRoot, "needs root: it runs something as another user");
}

const privateCheckout = await firstPrivateDirectory(import.meta.dirname);

/** Skips a test that runs code of this checkout as another user. */
export function requireOtherUser(context: TestContext): void {
  requireRoot(context);
  context.skip(privateCheckout !== undefined, "the checkout is private to root");
}

/**
 * A temporary directory that other users can reach, removed after the test unless said otherwise.
 */
export async function temporaryDirectory(
  whenOver: WhenOver = onTestFinished,
  place = quickPlace,
): Promise<string> {
  const directory = await mkdtemp(join(place, "str-sandbox-"));
  await chmod(directory, 0o755);
  whenOver(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

let problemHere: Promise<string | undefined> | undefined;

/** Why this host cannot make the simplest of sandboxes, or undefined when it can. */
async function bubblewrapProblem(): Promise<string | undefined> {
  const identity = sandboxUid === undefined ? {} : { uid: sandboxUid, gid: sandboxUid };
  const argv = ["--unshare-all", "--ro-bind", "/", "/", "--", "/usr/bin/true"];
  return run(bwrapBin, argv, { ...identity, env: {}, cwd: "/" }).then(
    () => undefined,
    (error: Error) => error.message,
  );
}

/** What a backend is opened with that tells the test runner of what goes wrong meanwhile. */
export function backendOptions(workBase: string): BackendOptions {
  return {
    workBase,
    uid: sandboxUid,
    clock: systemClock,
    newId,
    onRemoveFailed(error) {
      throw error;
    },
    onGuardLost(error) {
      throw error;
    },
  };
}

/**
 * A real backend below a directory of its own, which is removed after the test unless said
 * otherwise; skips the test where bubblewrap cannot make sandboxes.
 */
export async function openBackend(
  context: TestContext,
  changes: Partial<BubblewrapOptions> = {},
  whenOver: WhenOver = onTestFinished,
  place = quickPlace,
): Promise<BubblewrapBackend> {
  const problem = await (problemHere ??= bubblewrapProblem());
  context.skip(problem !== undefined, `bubblewrap cannot make sandboxes here: ${problem}`);
  const workBase = join(await temporaryDirectory(whenOver, place), "work");
  const { identify, tryGroups, tryHost } = sharedPreparations;
  const prepared = { identify, tryGroups, tryHost };
  return openBubblewrap({ ...backendOptions(workBase), bwrapBin, ...prepared, ...changes });
}

/**
 * Backends for all tests of a file, with control groups where there are some and without; see
 * `shared`.
 */
export function sharedBackends(
  place = quickPlace,
): (context: TestContext, withoutCgroups?: boolean) => Promise<BubblewrapBackend> {
  const usual = shared((context, whenOver) => openBackend(context, {}, whenOver, place));
  const other = shared((context, whenOver) =>
    openBackend(context, { withoutCgroups: true }, whenOver, place),
  );
  return (context, withoutCgroups = false) => (withoutCgroups ? other : usual)(context);
}

/**
 * A directory in a backend's own, for what a test shows its sandboxes; it goes with the backend.
 */
export async function scratchDirectory({
  scratchDir,
}: Pick<SandboxBackend, "scratchDir">): Promise<string> {
  const directory = await mkdtemp(join(scratchDir, "test-"));
  await chmod(directory, 0o755);
  return directory;
}

/** What a sandbox of the restrictive profile is made of. */
export function request(changes: Partial<SandboxRequest> = {}): SandboxRequest {
  return {
    memoryBound: "address-space",
    profile: builtInProfiles.get("restrictive")!,
    mounts: [],
    devices: [],
    environment: new Map([["PATH", "/usr/bin"]]),
    ...changes,
  };
}

/** A shell that runs a script. */
export function shell(script: string): Launch {
  return { argv: ["/bin/sh", "-c", script] };
}

/** Runs a shell script to its end in a sandbox that exists already. */
export async function runScript(sandbox: Sandbox, script: string): Promise<ExitReport> {
  return (await sandbox.start(shell(script))).exited;
}

/** By which a script says that it is running: it leaves a file `ready`. */
export const sayReady = "echo > output/ready";

/** The content of a file that a script leaves in output/, as soon as it is there. */
export function outputFile(sandbox: Sandbox, name: string): Promise<string> {
  const path = join(sandbox.workDir.path, "output", name);
  return vi.waitFor(() => readFile(path, "utf8"), patience);
}

/** A command that goes on, and words that no other command line has. */
export function uniqueSleep(): { readonly marker: string; readonly command: string } {
  const marker = `86400.${Math.floor(Math.random() * 1e12)}`;
  return { marker, command: `sleep ${marker}` };
}

/** What hosts keep open of control groups, for later sandboxes: `cgroup/reuse.test.ts`. */
const ofControlGroups = " /sys/fs/cgroup/";

/** What this process has open: numbers, and what they lead to. Without those of control groups. */
export async function presentDescriptors(): Promise<ReadonlySet<string>> {
  return new Set((await allDescriptors()).filter((each) => !each.includes(ofControlGroups)));
}

/** What it has open of control groups. */
export async function descriptorsOfGroups(): Promise<readonly string[]> {
  return (await allDescriptors()).filter((each) => each.includes(ofControlGroups));
}

async function allDescriptors(): Promise<readonly string[]> {
  const found: string[] = [];
  for (const number of await readdir("/proc/self/fd")) {
    // The list itself was read by one that is gone.
    const target = await readlink(`/proc/self/fd/${number}`).catch(() => undefined);
    if (target !== undefined) found.push(`${number} ${target}`);
  }
  return found;
}

/**
 * What it has opened since, and not closed. A count would be less certain: earlier tests of the
 * same process may close theirs meanwhile.
 */
export async function openedSince(before: ReadonlySet<string>): Promise<readonly string[]> {
  return [...(await presentDescriptors()).difference(before)];
}

/** How many there are of {@link presentDescriptors}. */
export async function openDescriptors(): Promise<number> {
  return (await presentDescriptors()).size;
}

/** What this process has open at a path. */
export async function descriptorsOf(path: string): Promise<string[]> {
  const names = await readdir("/proc/self/fd");
  const targets = await Promise.all(
    names.map(async (name) => readlink(`/proc/self/fd/${name}`).catch(() => "")),
  );
  return targets.filter((target) => target === path);
}

/** Ids of all processes but this one. */
async function otherProcesses(): Promise<number[]> {
  return (await readdir("/proc")).map(Number).filter((id) => id > 0 && id !== process.pid);
}

/** A file of /proc of some processes, by their ids; empty of those that are gone. */
async function readOf(ids: readonly number[], file: string): Promise<ReadonlyMap<number, string>> {
  const texts = ids.map((id) => readFile(`/proc/${id}/${file}`, "utf8").catch(() => ""));
  return new Map((await Promise.all(texts)).map((text, index) => [ids[index]!, text]));
}

function idsWith(text: string, texts: ReadonlyMap<number, string>): number[] {
  return [...texts].filter(([, candidate]) => candidate.includes(text)).map(([id]) => id);
}

/**
 * The command lines of all other processes by their ids, with a NUL after each word; zombies have
 * none.
 */
export async function commandLines(): Promise<ReadonlyMap<number, string>> {
  return readOf(await otherProcesses(), "cmdline");
}

/** Ids of the processes whose command line contains a text. */
export async function processesWith(marker: string): Promise<number[]> {
  return idsWith(marker, await commandLines());
}

/**
 * Ids of the processes that have a work directory mounted, but for those that are on their way out
 * of the kernel.
 */
export async function processesIn(workDir: string): Promise<number[]> {
  // Asked first: who ends between the two looks has lived until then.
  const others = await otherProcesses();
  const living = others.filter((id) => readStat(`/proc/${id}`)?.isExiting === false);
  return idsWith(`/${basename(workDir)} `, await readOf(living, "mountinfo"));
}
