/**
 * A doctor that is killed leaves none of its sandboxes behind, and what starts next removes its
 * directories.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, readlinkSync } from "node:fs";
import {
  access,
  chmod,
  mkdtemp,
  readFile,
  readdir,
  readlink,
  rm,
  utimes,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { ownerTag } from "../../../worker/sandbox/orphans.ts";
import {
  childrenOf,
  knownChildrenOf,
  signalQuietly,
} from "../../../worker/sandbox/proc/processes.ts";
import { consultHere } from "../../support/doctor/consultation.ts";
import { HeldSandboxes } from "../../support/sandboxes/held-sandboxes.ts";
import { programEnvironment } from "../../support/workers/program-environment.ts";
import { reachableDirectory } from "../../support/workers/rig.ts";

const entry = fileURLToPath(new URL("../../../worker/main.ts", import.meta.url));
const patience = { timeout: 30_000, interval: 50 };

/**
 * A bubblewrap that stops before a baseline, when it has not yet asked to die with its parent.
 * Baselines have their options on the command line, real sandboxes behind a descriptor.
 */
const standsStill = `#!/bin/bash
[[ "$*" = *baseline-* ]] || exec /usr/bin/bwrap "$@"
read -t 600 <> <(:)
`;

/** Processes by number, with their command lines, of those that have a word in it. */
async function processesWith(word: string): Promise<readonly (readonly [number, string])[]> {
  const pids = (await readdir("/proc")).map(Number).filter(Number.isInteger);
  const lines = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => "")),
  );
  return pids
    .map((pid, index) => [pid, lines[index]!] as const)
    .filter(([, line]) => line.includes(word));
}

test(
  "a baseline of a doctor that is killed does not outlive it, however young it is",
  { tags: "full" },
  async () => {
    const base = await reachableDirectory();
    onTestFinished(() => rm(base, { recursive: true, force: true }));
    const bwrap = join(base, "bwrap");
    await writeFile(bwrap, standsStill);
    await chmod(bwrap, 0o755);
    const environment = {
      ...programEnvironment(),
      SANDBOX_BWRAP_BIN: bwrap,
      SANDBOX_WORK_DIR: join(base, "work"),
    };
    const argv = [entry, "doctor", "--attack", "--profile", "restrictive"];
    const doctor = spawn(process.execPath, argv, { env: environment, stdio: "ignore" });
    const ended = once(doctor, "exit");
    onTestFinished(async () => {
      for (const [pid] of await processesWith(bwrap)) signalQuietly(pid, "SIGKILL");
    });
    onTestFinished(() => void doctor.kill("SIGKILL"));

    const baseline = await vi.waitFor(async () => {
      const [found] = (await processesWith(bwrap)).filter(([, line]) => line.includes("baseline-"));
      expect(found).toBeDefined();
      return found!;
    }, patience);
    // What a killed doctor has planted nobody removes.
    const planted = /\/var\/tmp\/str-attack-\w+/.exec(baseline[1])![0];
    onTestFinished(() => rm(planted, { recursive: true, force: true }));
    doctor.kill("SIGKILL");
    await ended;
    await vi.waitFor(async () => expect(await processesWith(bwrap)).toEqual([]), patience);
  },
);

/** The scratch directory of a doctor, which it has open. */
async function scratchOf(pid: number): Promise<string> {
  const names = await readdir(`/proc/${pid}/fd`);
  const paths = await Promise.all(
    names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => "")),
  );
  const found = paths.find((path) => /^\/tmp\/str-doctor-\w{6}$/.test(path));
  expect(found).toBeDefined();
  return found!;
}

/**
 * Whether a process reads an eventfd, by which bubblewrap lets it go: it waits for ever if nobody
 * does.
 */
function waitsForBubblewrap(pid: number): boolean {
  try {
    const [, descriptor = ""] = readFileSync(`/proc/${pid}/syscall`, "utf8").split(" ");
    return readlinkSync(`/proc/${pid}/fd/${Number(descriptor)}`) === "anon_inode:[eventfd]";
  } catch {
    return false; // it has ended, or is on its way
  }
}

test(
  "the next start ends trials of a doctor that died with its guard, and removes its directory",
  { tags: "full" },
  async () => {
    const base = await reachableDirectory();
    onTestFinished(() => rm(base, { recursive: true, force: true }));
    const held = await HeldSandboxes.in(base);
    await held.holdAt("born");
    const environment = { ...programEnvironment(), SANDBOX_BWRAP_BIN: held.bwrapBin };
    const doctor = spawn(process.execPath, [entry, "doctor"], {
      env: environment,
      stdio: "ignore",
    });
    onTestFinished(() => void doctor.kill("SIGKILL"));
    const ended = once(doctor, "exit");
    const [scratch, tag] = await vi.waitFor(async () => {
      const path = await scratchOf(doctor.pid!);
      const worker = (await readdir(path)).find((name) => name.startsWith("worker-"));
      expect(worker).toBeDefined();
      return [path, ownerTag(worker!)] as const;
    }, patience);
    onTestFinished(() => rm(scratch, { recursive: true, force: true }));
    onTestFinished(async () => {
      for (const [pid] of await processesWith(tag)) signalQuietly(pid, "SIGKILL");
    });
    // What bubblewrap has made, and has not let go yet.
    const born = await vi.waitFor(async () => {
      const tagged = (await processesWith(tag)).map(([pid]) => pid);
      // Not what ends by itself: the shell in front of bubblewrap starts others, and a process that
      // is just born runs on.
      const children = tagged.flatMap((pid) => knownChildrenOf(pid));
      const found = children.filter((pid) => waitsForBubblewrap(pid));
      expect(found.length).toBeGreaterThan(0);
      return found;
    }, patience);
    // Stop the doctor, which would start another guard, and kill the guard before it: neither can
    // clean up.
    doctor.kill("SIGSTOP");
    for (const pid of childrenOf(doctor.pid!))
      if ((await readFile(`/proc/${pid}/cmdline`, "latin1")).includes("str-orphans"))
        signalQuietly(pid, "SIGKILL");
    doctor.kill("SIGKILL");
    await ended;
    await held.forget();

    const left = (await processesWith(tag)).map(([pid]) => pid);
    expect(born.filter((pid) => left.includes(pid)).length).toBeGreaterThan(0);
    expect((await consultHere()).code).toBe(0);
    expect(await processesWith(tag)).toEqual([]);
    await expect(access(scratch)).rejects.toThrow("ENOENT");
  },
);

test("the next start removes what a doctor of its user has left, and nothing else", async () => {
  const dead = await mkdtemp("/var/tmp/str-attack-");
  const starting = await mkdtemp("/var/tmp/str-attack-");
  const others = await mkdtemp("/var/tmp/str-other-");
  for (const path of [dead, starting, others])
    onTestFinished(() => rm(path, { recursive: true, force: true }));
  await writeFile(join(dead, "secret"), "");
  await utimes(dead, 0, 0);
  await utimes(others, 0, 0);

  expect((await consultHere()).code).toBe(0);
  await expect(access(dead)).rejects.toThrow("ENOENT");
  await access(starting);
  await access(others);
});
