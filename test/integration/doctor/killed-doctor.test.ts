/**
 * A `str-worker doctor --attack` that is killed leaves none of its weak sandboxes behind.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { signalQuietly } from "../../../worker/sandbox/proc/processes.ts";
import { reachableDirectory } from "../../support/rig.ts";

const entry = new URL("../../../worker/main.ts", import.meta.url).pathname;
const patience = { timeout: 30_000, interval: 50 };

/**
 * A bubblewrap that stands still, instead of making a control, in the moment in which it has not yet asked to die with its
 * parent: real sandboxes have their options behind a descriptor, controls have them on the command line.
 */
const standsStill = `#!/bin/bash
[[ "$*" = *control-* ]] || exec /usr/bin/bwrap "$@"
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

test("a control of a doctor that is killed does not outlive it, however young it is", async () => {
  const base = await reachableDirectory();
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const bwrap = join(base, "bwrap");
  await writeFile(bwrap, standsStill);
  await chmod(bwrap, 0o755);
  const environment = {
    PATH: process.env["PATH"],
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

  const control = await vi.waitFor(async () => {
    const [found] = (await processesWith(bwrap)).filter(([, line]) => line.includes("control-"));
    expect(found).toBeDefined();
    return found!;
  }, patience);
  // What a killed doctor has planted nobody removes.
  const planted = /\/var\/tmp\/str-attack-\w+/.exec(control[1])![0];
  onTestFinished(() => rm(planted, { recursive: true, force: true }));
  doctor.kill("SIGKILL");
  await ended;
  await vi.waitFor(async () => expect(await processesWith(bwrap)).toEqual([]), patience);
});
