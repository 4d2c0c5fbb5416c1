/**
 * No call gets code, or an entry, that is not the present one.
 */
import { describe, expect, test } from "vitest";
import { restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import { noticeAfterMs } from "../../../worker/pool/code/code-notice.ts";
import { loadDelayMs } from "../../../worker/pool/sandbox-factory.ts";
import { tool } from "../manifest/fixtures.ts";
import { run, setUp } from "./set-up.ts";

const entry = tool("a");
const warm = { min: 2, max: 4 };
const notice = "code.in_force";

/** Starts with sandboxes that wait. */
async function waiting(profile?: "pool") {
  const scene = setUp(profile && { profile: restrictiveProfile });
  scene.starts.follow([tool("a", { warm }), tool("n", { warm, runtime: "node" })]);
  await scene.rest();
  expect(scene.starts.stats).toMatchObject([{ idle: 2 }, { idle: 2 }]);
  const change = (): void => {
    scene.technology.code = "second";
    scene.versions.change("python");
  };
  return { ...scene, change };
}

describe("when other packages are installed for a tool", () => {
  test("no call finds those before, and what waits is made anew when the pools are told", async () => {
    const scene = await waiting();
    await using _ = scene.starts;
    scene.technology.installation = "other";
    scene.technology.code = "second";
    expect(await scene.call(entry)).toEqual({ startMode: "cold", code: "second" });
    scene.technology.installation = "another";
    scene.technology.code = "third";
    scene.starts.follow([tool("a", { warm })]);
    expect(scene.starts.stats).toMatchObject([{ idle: 0, hasTemplate: false }]);
    await scene.pass(1_000);
    expect(await scene.call(entry)).toEqual({ startMode: "template", code: "third" });
    const reason = "packages of the tool changed";
    expect(scene.lines.filter((line) => line["reason"] === reason)).toHaveLength(1);
    expect(scene.technology.violations).toEqual([]);
  });
});

describe("when the code has changed", () => {
  test.for(["pool", undefined] as const)(
    "no call runs the code before, with %s",
    async (profile) => {
      const scene = await waiting(profile);
      await using _ = scene.starts;
      scene.change();
      expect(await scene.call(entry)).toEqual({ startMode: "cold", code: "second" });
      await scene.pass(1_000);
      expect(await scene.call(entry)).toMatchObject({ code: "second" });
      await scene.rest();
      expect(scene.starts.stats).toMatchObject([{ hits: 1, idle: 2 }, { idle: 2 }]);
      expect(scene.technology.violations).toEqual([]);
    },
  );

  test("what waits is given up at once, but that of other languages", async () => {
    const scene = await waiting();
    await using _ = scene.starts;
    scene.change();
    expect(scene.starts.stats).toMatchObject([
      { idle: 0, hasTemplate: false },
      { idle: 2, hasTemplate: true },
    ]);
    expect(scene.lines.filter(({ event }) => event === "sandbox.retired")).toMatchObject([
      { tool: "a", count: 2, reason: "tool code changed" },
    ]);
  });

  test.for(["pool", undefined] as const)(
    "what is being made of the code before never waits, with %s",
    async (profile) => {
      const scene = setUp(profile && { profile: restrictiveProfile });
      await using _ = scene.starts;
      scene.technology.loadMs = 100;
      scene.starts.follow([tool("a", { warm: { min: 1, max: 1 } })]);
      await scene.pass(50);
      scene.technology.code = "second";
      scene.versions.change("python");
      await scene.pass(1_000, 50);
      expect(await scene.call(entry)).toMatchObject({
        code: "second",
        startMode: profile ?? "template",
      });
    },
  );

  test.for(["pool", undefined] as const)(
    "what was made of the code before at that very moment never waits, with %s",
    async (profile) => {
      const scene = setUp(profile && { profile: restrictiveProfile });
      scene.technology.loadMs = 100;
      scene.starts.follow([tool("a", { warm: { min: 1, max: 1 } })]);
      await scene.rest();
      scene.clock.advance(100);
      scene.versions.change("python");
      await scene.rest();
      expect(scene.pool()).toMatchObject({ idle: 0, making: 0, hasTemplate: false });
      expect(scene.technology.open.size).toBe(0);
      await scene.starts[Symbol.asyncDispose]();
      expect(scene.technology.violations).toEqual([]);
    },
  );

  test("nothing is made of it before it had time to settle", async () => {
    const scene = await waiting();
    await using _ = scene.starts;
    const { template } = scene.technology.begun;
    for (let change = 0; change < 5; change++) {
      scene.change();
      await scene.pass(loadDelayMs - 1);
      expect(scene.technology.begun.template).toBe(template);
    }
    await scene.pass(1);
    expect(scene.technology.begun.template).toBe(template + 1);
  });

  test("a call that waits for a template starts cold", async () => {
    const scene = await waiting();
    await using _ = scene.starts;
    scene.technology.forkMs = 10;
    const calls = [scene.call(entry), scene.call(entry), scene.call(entry)];
    await scene.rest();
    scene.change();
    await scene.rest();
    expect(await Promise.all(calls)).toMatchObject([
      { startMode: "template" },
      { startMode: "template" },
      { startMode: "cold", code: "second" },
    ]);
  });

  test("the log says so when no call will run the code before", async () => {
    const scene = await waiting();
    await using _ = scene.starts;
    const before = await scene.acquire(entry);
    scene.change();
    await scene.pass(noticeAfterMs);
    expect(scene.events()).not.toContain(notice);
    expect(await run(before)).toBe("first");
    await scene.rest();
    expect(scene.lines.find(({ event }) => event === notice)).toMatchObject({
      level: "info",
      runtime: "python",
    });
    await before[Symbol.asyncDispose]();
  });

  test("the log says so once for changes that come close together", async () => {
    const scene = await waiting();
    await using _ = scene.starts;
    scene.change();
    await scene.pass(noticeAfterMs / 2);
    scene.change();
    await scene.pass(noticeAfterMs * 2, 50);
    expect(scene.events().filter((event) => event === notice)).toHaveLength(1);
  });

  test("a call that never begins does not keep the log from saying so", async () => {
    const scene = await waiting();
    await using _ = scene.starts;
    {
      await using _given = await scene.acquire(entry);
      scene.change();
    }
    await scene.pass(noticeAfterMs);
    expect(scene.events()).toContain(notice);
  });
});

describe("when the manifest has changed", () => {
  test("what waits for a tool that is not served any more is given up", async () => {
    const scene = await waiting();
    await using _ = scene.starts;
    scene.starts.follow([tool("n", { warm, runtime: "node" })]);
    await scene.rest();
    expect(scene.starts.stats).toMatchObject([{ tool: "n", idle: 2 }]);
    expect(scene.technology.count("template")).toBe(1);
  });

  test("a call of a changed entry never meets a sandbox of the one before", async () => {
    const scene = await waiting();
    await using _ = scene.starts;
    const changed = tool("a", { warm, env: ["TOKEN"] });
    expect(await scene.call(changed)).toMatchObject({ startMode: "cold" });
    scene.starts.follow([changed]);
    await scene.rest();
    expect(scene.starts.stats).toMatchObject([{ tool: "a", idle: 2 }]);
    expect(await scene.call(entry)).toMatchObject({ startMode: "cold" });
    expect(await scene.call(changed)).toMatchObject({ startMode: "template" });
  });

  test("what waits goes on to, where nothing that matters to it changed", async () => {
    const scene = await waiting();
    await using _ = scene.starts;
    const begun = { ...scene.technology.begun };
    const same = tool("a", { warm: { min: 1, max: 1 }, description: "better" });
    scene.starts.follow([same, tool("n", { warm, runtime: "node" })]);
    await scene.rest();
    expect(scene.technology.begun).toEqual(begun);
    expect(scene.starts.stats).toMatchObject([{ idle: 1, target: 1 }, { idle: 2 }]);
  });
});

describe("when a part of the host that a tool has is another one", () => {
  const own = tool("a", { warm: { min: 1, max: 1 }, devices: ["/dev/one"] });

  /** Starts with a sandbox that waits with the device. */
  async function withDevice(profile?: "pool") {
    const scene = setUp(profile && { profile: restrictiveProfile });
    scene.starts.follow([own]);
    // To look at a device takes time that no clock of ours decides.
    const untilWaiting = () => scene.until(() => expect(scene.pool().idle).toBe(1));
    await untilWaiting();
    return { ...scene, untilWaiting };
  }

  test.for(["pool", undefined] as const)(
    "no call gets the one before, with %s",
    async (profile) => {
      const scene = await withDevice(profile);
      await using _ = scene.starts;
      scene.host.device = "/dev/zero";
      expect(await scene.call(own)).toMatchObject({ startMode: "cold" });
      await scene.untilWaiting();
      expect(await scene.call(own)).toMatchObject({ startMode: profile ?? "template" });
      expect(scene.technology.begun).toMatchObject(profile ? { pool: 2 } : { template: 2 });
    },
  );

  test("no call gets one that its tool may not have any more", async () => {
    const scene = await withDevice();
    await using _ = scene.starts;
    scene.host.device = undefined;
    await expect(scene.call(own)).rejects.toThrow("not allowed any more");
  });
});
