/**
 * The directories of the library's backends, and those of killed processes.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { ownerTag } from "../../../worker/sandbox/orphans.ts";
import { newId } from "../../../worker/support/ids.ts";
import { makeHome, sweepHomes, workIn } from "../../../worker/wiring/runtime/homes.ts";
import { leaveDeadSocket } from "../../support/containers/dead-socket.ts";
import { temporaryDirectory } from "../sandbox/sandbox-host.ts";

const fail = (error: unknown): void => {
  throw error;
};

async function home() {
  vi.stubEnv("TMPDIR", await temporaryDirectory());
  onTestFinished(() => void vi.unstubAllEnvs());
  const own = await makeHome();
  onTestFinished(() => own[Symbol.asyncDispose]());
  return own;
}

/** Goes on until it is killed, with the tag of a worker's sandboxes. */
async function sandboxOf(worker: string): Promise<ChildProcess> {
  const argv = ["-c", "echo ready; read -r end", "sh", `/work/${ownerTag(worker)}/call`];
  const child = spawn("/bin/sh", argv, { stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  return child;
}

test("the directory of a dead process is removed with its sandboxes, whoever has its number now", async () => {
  const { base } = await home();
  const worker = `worker-${newId()}`;
  const dead = join(base, `${process.pid}-abcdef`);
  await mkdir(join(dead, workIn, worker), { recursive: true });
  await leaveDeadSocket(dead);
  const sandbox = await sandboxOf(worker);
  const ended = once(sandbox, "exit");
  await sweepHomes(base, undefined, fail);
  expect(await ended).toEqual([null, "SIGKILL"]);
  expect(await readdir(base)).not.toContain(`${process.pid}-abcdef`);
});

test("the directory of a living process stays, and so does one that is being made", async () => {
  const { base, path } = await home();
  const other = await makeHome();
  await mkdir(join(base, "4194305-abcdef"));
  await mkdir(join(base, "notes"));
  await leaveDeadSocket(join(base, "notes"));
  const names = [path, other.path, "4194305-abcdef", "notes"].map((each) => each.split("/").at(-1));
  await sweepHomes(base, undefined, fail);
  expect((await readdir(base)).sort()).toEqual(names.sort());
  await other[Symbol.asyncDispose]();
  expect(await readdir(base)).toHaveLength(3);
});

test("two sweeps together are as good as one", async () => {
  const { base } = await home();
  for (const name of ["1-abcdef", "2-abcdef"]) {
    await mkdir(join(base, name));
    await leaveDeadSocket(join(base, name));
  }
  const failures: unknown[] = [];
  await Promise.all([
    sweepHomes(base, undefined, (error) => void failures.push(error)),
    sweepHomes(base, undefined, (error) => void failures.push(error)),
  ]);
  expect(failures).toEqual([]);
  expect((await readdir(base)).filter((name) => name.endsWith("-abcdef"))).toEqual([]);
});
