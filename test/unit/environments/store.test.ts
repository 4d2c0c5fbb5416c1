/**
 * The directory of environments: finished ones, uses by workers, locks, and what is removed.
 */
import { execFile, spawn } from "node:child_process";
import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  open,
  readdir,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { existsSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { copyOut } from "../../../worker/environments/build/run.ts";
import { writeFacts } from "../../../worker/environments/facts.ts";
import { lockFile } from "../../../worker/environments/lock.ts";
import { EnvironmentStore } from "../../../worker/environments/store.ts";
import { Upkeep } from "../../../worker/environments/upkeep.ts";
import { openDirectory } from "../../../worker/support/files/below.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { newId } from "../../../worker/support/ids.ts";

const run = promisify(execFile);
const never = new AbortController().signal;
const keys = ["a", "b", "c", "d"].map((digit) => digit.repeat(64));
const [a = "", b = "", c = "", d = ""] = keys;
let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "str-store-"));
  // After what a test opens, which may write until it is closed.
  onTestFinished(() => rm(directory, { recursive: true }));
});

async function openStore(): Promise<EnvironmentStore> {
  const store = await EnvironmentStore.open({ directory, uid: undefined, newId });
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

/** Puts an environment into the directory, last used so many days ago. */
async function put(
  store: EnvironmentStore,
  key: string,
  sizeBytes = 10,
  daysAgo = 0,
): Promise<void> {
  const building = await store.startBuild(key);
  await writeFacts(building, {
    ...{ runtime: "python", title: "a", names: [], installer: "pip", interpreter: "python" },
    ...{ sizeBytes, madeAt: "2026-01-01T00:00:00Z", tookMs: 1 },
  });
  const { dir } = await store.publish(key, building);
  const time = new Date(Date.now() - daysAgo * 86_400_000);
  await utimes(join(dir, "environment.json"), time, time);
}

function upkeep(
  store: EnvironmentStore,
  maxBytes: number,
  inForce: readonly string[] = [],
): Upkeep {
  const log = { info: () => undefined, warn: () => undefined };
  const keepMs = 30 * 86_400_000;
  return new Upkeep({ store, clock: systemClock, keepMs, maxBytes, log, inForce: () => inForce });
}

const present = async (): Promise<readonly string[]> =>
  (await readdir(directory)).filter((name) => keys.includes(name)).sort();

/** What a process finds that sees all files read-only, or the reason why it opens nothing. */
async function seenReadOnly(key: string): Promise<unknown> {
  const program = `
    const { EnvironmentStore } = await import(process.argv[1]);
    const [, , directory, key] = process.argv;
    try {
      await using store = await EnvironmentStore.open({ directory, newId: () => "id" });
      const found = await store.use(key);
      const build = await store.lock(key, AbortSignal.timeout(1000)).catch(({ message }) => message);
      console.log(JSON.stringify({ found: found?.dir, listed: (await store.list()).length, build }));
    } catch ({ message }) {
      console.log(JSON.stringify({ refused: message }));
    }`;
  const store = new URL("../../../worker/environments/store.ts", import.meta.url).href;
  const argv = ["--ro-bind", "/", "/", "--dev", "/dev", process.execPath, "--eval", program];
  const { stdout } = await run("bwrap", [...argv, store, directory, key]);
  return JSON.parse(stdout);
}

describe("a read-only directory", () => {
  test("has what was built, and builds nothing", async () => {
    await put(await openStore(), a);
    const build = "PACKAGE_DIR is read-only and lacks them";
    expect(await seenReadOnly(a)).toEqual({ found: join(directory, a), listed: 1, build });
    expect(await seenReadOnly(b)).toEqual({ listed: 1, build });
  });

  test("is refused where others can change it elsewhere", async () => {
    await put(await openStore(), a);
    await chmod(directory, 0o777);
    expect(await seenReadOnly(a)).toEqual({ refused: "PACKAGE_DIR cannot be used" });
  });
});

describe("unused environments", () => {
  test("go after their time, and the oldest earlier where all are too much", async () => {
    const store = await openStore();
    await put(store, a, 10, 31);
    await put(store, b, 10, 29);
    await put(store, c, 10, 2);
    await put(store, d, 10, 1);
    await upkeep(store, 40).round(never);
    expect(await present()).toEqual([b, c, d]);
    await upkeep(store, 20).round(never);
    expect(await present()).toEqual([c, d]);
    expect(await readdir(join(directory, "building"))).toEqual([]);
  });

  test("go with what dead builders left, where they are not whole", async () => {
    const store = await openStore();
    await put(store, a);
    await store.startBuild(b);
    await mkdir(join(directory, c));
    await mkdir(join(directory, d));
    await store.use(d);
    await upkeep(store, 40).round(never);
    expect(await present()).toEqual([a, d]);
    expect(await readdir(join(directory, "building"))).toEqual([]);
  });

  test("stay while a live worker uses them, whatever their age and size", async () => {
    const [store, other] = [await openStore(), await openStore()];
    await put(store, a, 10, 40);
    await put(store, b, 10, 40);
    await other.use(a);
    await upkeep(store, 0, [b]).round(never);
    expect(await present()).toEqual([a, b]);
    expect(await store.remove(a, never)).toBe(false);
    await other[Symbol.asyncDispose]();
    await upkeep(store, 0, [b]).round(never);
    expect(await present()).toEqual([b]);
  });

  test("are no longer used by a worker that was killed", async () => {
    const store = await openStore();
    await put(store, a);
    const dead = join(directory, "workers/dead");
    await mkdir(dead);
    // A socket without a listener is what a killed process leaves.
    await run("/usr/bin/python3", [
      "-c",
      "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])",
      join(dead, "alive"),
    ]);
    await writeFile(join(dead, a), "");
    expect(await store.remove(a, never)).toBe(true);
    expect(existsSync(dead)).toBe(false);
    expect(await store.remove(a, never)).toBe(false);
  });
});

test("the directory of a worker that starts is removed by no other, unless it is old", async () => {
  const store = await openStore();
  const starting = join(directory, "workers/.starting");
  await mkdir(starting);
  await run("/usr/bin/python3", [
    "-c",
    "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])",
    join(starting, "alive"),
  ]);
  await store.keysInUse();
  expect(existsSync(starting)).toBe(true);
  const before = new Date(Date.now() - 3_600_000);
  await utimes(starting, before, before);
  await store.keysInUse();
  expect(existsSync(starting)).toBe(false);
  const names = await readdir(join(directory, "workers"));
  expect(names.filter((name) => name.startsWith("."))).toEqual([]);
});

describe("an environment", () => {
  test("is whole only with its facts", async () => {
    const store = await openStore();
    await mkdir(join(directory, a, "packages"), { recursive: true });
    expect(await store.use(a)).toBeUndefined();
    await writeFile(join(directory, a, "environment.json"), "{");
    expect(await store.use(a)).toBeUndefined();
    await put(store, a);
    expect(await store.use(a)).toMatchObject({ key: a, dir: join(directory, a) });
    expect((await store.list()).map(({ key }) => key)).toEqual([a]);
  });

  test("is in no directory that others can change", async () => {
    await chmod(directory, 0o777);
    const error = await openStore().catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      message: "PACKAGE_DIR cannot be used",
      cause: { message: expect.stringContaining("can be changed by others") },
    });
  });

  test("is in no directory of another user", async ({ skip }) => {
    skip(process.getuid?.() !== 0, "only root gives directories away");
    await mkdir(join(directory, "building"));
    await chown(join(directory, "building"), 60_001, 60_001);
    await expect(openStore()).rejects.toMatchObject({
      cause: { message: expect.stringContaining("belongs to another user") },
    });
  });

  test("has no set-user-ID bit, no pipe, and nothing after an abort", async () => {
    await mkdir(join(directory, "output/packages"), { recursive: true });
    await mkdir(join(directory, "copied"));
    const program = join(directory, "output/packages/program");
    await writeFile(program, "");
    await chmod(program, 0o6755);
    await run("/usr/bin/mkfifo", [join(directory, "output/packages/pipe")]);
    await using output = await open(join(directory, "output"), openDirectory);
    const over = AbortSignal.abort(new Error("over"));
    await expect(copyOut(output, "packages", join(directory, "copied"), over)).rejects.toThrow(
      "over",
    );
    await copyOut(output, "packages", join(directory, "copied"), never);
    expect(await readdir(join(directory, "copied"))).toEqual(["program"]);
    expect((await stat(join(directory, "copied/program"))).mode & 0o7777).toBe(0o755);
  });

  test(
    "has no content of the host through a link that its build left",
    { tags: "promise-S27" },
    async () => {
      await mkdir(join(directory, "secret"));
      await writeFile(join(directory, "secret/file"), "seven seals");
      await mkdir(join(directory, "output/packages"), { recursive: true });
      await symlink(join(directory, "secret"), join(directory, "output/link"));
      await symlink(join(directory, "secret/file"), join(directory, "output/packages/inner"));
      await using output = await open(join(directory, "output"), openDirectory);
      await expect(copyOut(output, "link", join(directory, "copy"), never)).rejects.toThrow(
        /ELOOP|ENOTDIR/,
      );
      await mkdir(join(directory, "copied"));
      await copyOut(output, "packages", join(directory, "copied"), never);
      const { stdout } = await run("/usr/bin/find", [join(directory, "copied"), "-type", "f"]);
      expect(stdout).toBe("");
    },
  );
});

describe("a lock", () => {
  test("has one owner at a time, and none after the owner's abort", async () => {
    const path = join(directory, "lock");
    const first = await lockFile(path, never);
    const giveUp = new AbortController();
    const refused = lockFile(path, giveUp.signal);
    giveUp.abort(new Error("given up"));
    await expect(refused).rejects.toThrow("given up");
    let isHeld = false;
    const second = lockFile(path, never).then((lock) => {
      isHeld = true;
      return lock;
    });
    await (await lockFile(join(directory, "other"), never))[Symbol.asyncDispose]();
    expect(isHeld).toBe(false);
    await first[Symbol.asyncDispose]();
    await (await second)[Symbol.asyncDispose]();
  });

  test("ends with a process that is killed", async () => {
    const path = join(directory, "lock");
    const source = `
      const { lockFile } = await import(${JSON.stringify(new URL("../../../worker/environments/lock.ts", import.meta.url).href)});
      globalThis.lock = await lockFile(${JSON.stringify(path)}, new AbortController().signal);
      console.log("held");
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", source], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(child.stdout, "data");
    const waiting = lockFile(path, never);
    child.kill("SIGKILL");
    await (await waiting)[Symbol.asyncDispose]();
  });
});
