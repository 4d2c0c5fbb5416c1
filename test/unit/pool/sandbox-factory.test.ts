/**
 * What becomes of tools that cannot be made ready before their calls, for once or at all.
 */
import { describe, expect, test } from "vitest";
import { restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import { calmMs, retry } from "../../../worker/pool/sandbox-factory.ts";
import { tool } from "../manifest/fixtures.ts";
import { setUp } from "./set-up.ts";

const entry = tool("a");

/** Starts that tried once to have a sandbox wait. */
async function tried(arrange: (scene: ReturnType<typeof setUp>) => void, profile?: "pool") {
  const scene = setUp(profile && { profile: restrictiveProfile });
  arrange(scene);
  scene.starts.follow([entry]);
  await scene.call(entry);
  await scene.rest();
  return scene;
}

describe("a tool that is unfit", () => {
  test("for templates has a pool", async () => {
    const scene = await tried(({ technology }) => technology.unfit.add("template"));
    await using _ = scene.starts;
    expect(await scene.call(entry)).toMatchObject({ startMode: "pool" });
    expect(scene.lines.find(({ event }) => event === "warm_start.unfit")).toMatchObject({
      tool: "a",
      startMode: "template",
      next: "pool",
      err: { message: "unfit for template" },
    });
  });

  test("for both starts cold, and neither is tried again", async () => {
    const scene = await tried(({ technology }) => {
      technology.unfit.add("template").add("pool");
    });
    await using _ = scene.starts;
    await scene.pass(600_000, 10_000);
    expect(await scene.call(entry)).toMatchObject({ startMode: "cold" });
    await scene.rest();
    expect(scene.technology.begun).toMatchObject({ template: 1, pool: 1 });
    expect(scene.events()).not.toContain("warm_start.failed");
  });

  test("is tried again when its code has changed", async () => {
    const scene = await tried(({ technology }) => {
      technology.unfit.add("template").add("pool");
    });
    await using _ = scene.starts;
    scene.technology.unfit.clear();
    scene.versions.change("python");
    await scene.pass(1_000);
    expect(await scene.call(entry)).toMatchObject({ startMode: "template" });
  });

  test("is told once, however many of its sandboxes were being made", async () => {
    const scene = setUp({ profile: restrictiveProfile });
    await using _ = scene.starts;
    Object.assign(scene.technology, { loadMs: 10, unfit: new Set(["pool"]) });
    scene.starts.follow([tool("a", { warm: { min: 2, max: 2 } })]);
    await scene.pass(10);
    expect(scene.technology.begun.pool).toBe(2);
    expect(scene.events().filter((event) => event === "warm_start.unfit")).toHaveLength(1);
  });

  test("for the one way that its operator wants has no other", async () => {
    const scene = setUp();
    await using _ = scene.starts;
    scene.technology.unfit.add("template");
    const own = tool("a", { start: "template" });
    scene.starts.follow([own]);
    await scene.call(own);
    await scene.rest();
    expect(await scene.call(own)).toMatchObject({ startMode: "cold" });
    expect(scene.technology.begun.pool).toBe(0);
  });
});

describe("a tool that cannot be made ready now", () => {
  const failing = ({ technology }: ReturnType<typeof setUp>): void => {
    technology.failure = new Error("no memory at /srv/secret");
  };

  test("starts cold, and the log says why", async () => {
    const scene = await tried(failing);
    await using _ = scene.starts;
    expect(await scene.call(entry)).toMatchObject({ startMode: "cold" });
    expect(scene.lines.find(({ event }) => event === "warm_start.failed")).toMatchObject({
      level: "warn",
      tool: "a",
      startMode: "template",
      retryMs: retry.firstMs,
      err: { message: "no memory at /srv/secret" },
    });
  });

  test("is paused once, however many of its sandboxes were being made", async () => {
    const scene = setUp({ profile: restrictiveProfile });
    await using _ = scene.starts;
    failing(scene);
    scene.technology.loadMs = 10;
    scene.starts.follow([tool("a", { warm: { min: 2, max: 2 } })]);
    await scene.pass(10);
    expect(scene.technology.begun.pool).toBe(2);
    expect(scene.events().filter((event) => event === "warm_start.failed")).toHaveLength(1);
  });

  test("is tried again after pauses that grow, up to the longest", async () => {
    const scene = await tried(failing);
    await using _ = scene.starts;
    await scene.pass(310_000, 50);
    const pauses = scene.lines.flatMap(({ retryMs }) => (retryMs === undefined ? [] : [retryMs]));
    expect(pauses.slice(0, 10)).toEqual([
      500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000,
    ]);
  });

  test("waits for calls as soon as it can be, and begins with short pauses when it was calm", async () => {
    const scene = await tried(failing, "pool");
    await using _ = scene.starts;
    await scene.pass(5_000, 50);
    scene.technology.failure = undefined;
    await scene.pass(8_000, 50);
    expect(await scene.call(entry)).toMatchObject({ startMode: "pool" });
    await scene.pass(calmMs + 1, 10_000);
    scene.technology.crash("parked");
    await scene.rest();
    expect(scene.lines.findLast(({ retryMs }) => retryMs !== undefined)).toMatchObject({
      retryMs: retry.firstMs,
    });
  });
});

describe("a template that ends", () => {
  test("takes its waiting sandboxes along, and another one comes after a pause", async () => {
    const scene = await tried(() => undefined);
    await using _ = scene.starts;
    expect(scene.pool()).toMatchObject({ idle: 1, hasTemplate: true });
    scene.technology.crash("template");
    await scene.rest();
    expect(scene.pool()).toMatchObject({ idle: 0, hasTemplate: false });
    expect(scene.technology.open.size).toBe(0);
    expect(await scene.call(entry)).toMatchObject({ startMode: "cold" });
    expect(scene.lines.find(({ event }) => event === "warm_start.failed")).toMatchObject({
      err: { message: "an idle sandbox ended, or its template" },
    });
    expect(scene.technology.begun.template).toBe(1);
    await scene.pass(retry.firstMs);
    expect(await scene.call(entry)).toMatchObject({ startMode: "template" });
    expect(scene.technology.violations).toEqual([]);
  });

  test("while it makes a sandbox leaves none that waits", async () => {
    const scene = setUp();
    await using _ = scene.starts;
    scene.technology.forkMs = 10;
    scene.starts.follow([tool("a", { warm: { min: 1, max: 1 } })]);
    await scene.pass(5);
    scene.technology.crash("template");
    await scene.pass(5);
    expect(scene.pool()).toMatchObject({ idle: 0, making: 0 });
    expect(scene.technology.open.size).toBe(0);
  });

  test("again and again is not started again and again at once", async () => {
    const scene = await tried(() => undefined);
    await using _ = scene.starts;
    for (let second = 0; second < 60; second++) {
      scene.technology.crash("template");
      await scene.pass(1_000, 100);
    }
    expect(scene.technology.begun.template).toBeLessThan(12);
  });
});
