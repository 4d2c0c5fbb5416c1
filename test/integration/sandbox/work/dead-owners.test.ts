/**
 * Whose containers are removed.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { isDeadOwner } from "../../../../worker/sandbox/work/dead-owners.ts";
import { openLivenessSocket } from "../../../../worker/support/files/liveness.ts";
import { leaveDeadSocket } from "../../../support/containers/dead-socket.ts";
import { temporaryDirectory } from "../sandbox-host.ts";

const worker = "worker-000000000000000000000000";

async function owner(base: string, isAlive = false): Promise<string> {
  const directory = join(base, worker);
  await mkdir(directory, { recursive: true });
  if (!isAlive) await leaveDeadSocket(directory);
  else {
    const socket = await openLivenessSocket(directory);
    onTestFinished(() => socket[Symbol.asyncDispose]());
  }
  return directory;
}

test("a dead worker of the same base, whether its directory is left or not", async () => {
  const workBase = await temporaryDirectory();
  expect(await isDeadOwner(await owner(workBase), { workBase })).toBe(true);
  expect(await isDeadOwner(join(workBase, "worker-gone"), { workBase })).toBe(true);
});

test("dead processes whose bases are below the same directory, and no others", async () => {
  const basesBelow = join(await temporaryDirectory(), "all");
  const options = { workBase: join(basesBelow, "1-own", "work"), basesBelow };
  const other = await owner(join(basesBelow, "2-other", "work"));
  expect(await isDeadOwner(other, options)).toBe(true);
  expect(await isDeadOwner(other, { workBase: options.workBase })).toBe(false);
  const beside = await owner(join(`${basesBelow}-beside`, "2-other", "work"));
  expect(await isDeadOwner(beside, options)).toBe(false);
});

test("never one that lives", async () => {
  const basesBelow = await temporaryDirectory();
  const [workBase, further] = [join(basesBelow, "1-own"), join(basesBelow, "2-other")];
  expect(await isDeadOwner(await owner(workBase, true), { workBase, basesBelow })).toBe(false);
  expect(await isDeadOwner(await owner(further, true), { workBase, basesBelow })).toBe(false);
});
