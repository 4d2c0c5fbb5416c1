/**
 * How calls come to sandboxes that waited for them.
 */
import { describe, expect, test } from "vitest";
import type { StartMode, ToolEntry } from "../../../worker/manifest/manifest.ts";
import type { StartKind } from "../../../worker/protocol/execution.ts";
import { type IdleStartMode, restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import { seriesGapMs } from "../../../worker/pool/call-series.ts";
import { soonMs } from "../../../worker/pool/pool-scheduler.ts";
import { holdMs } from "../../../worker/pool/tool-pool.ts";
import { idleAfterMs } from "../../../worker/pool/sizing.ts";
import { forkTimeoutMs } from "../../../worker/pool/sandbox-factory.ts";
import { tool } from "../manifest/fixtures.ts";
import { anySignal, run, setUp, templateProfile } from "./set-up.ts";

const entry = tool("a");

/** A call after everything that an earlier one brought about. */
async function secondCall(scene: ReturnType<typeof setUp>, of: ToolEntry = entry) {
  await scene.call(of);
  await scene.rest();
  return scene.call(of);
}

describe("a call", () => {
  test("starts cold when nothing waits, and the next one finds a sandbox that does", async () => {
    const scene = setUp();
    await using _ = scene.starts;
    scene.starts.follow([entry]);
    expect(await scene.call(entry)).toEqual({ startMode: "cold", code: "first" });
    await scene.rest();
    expect(scene.pool()).toMatchObject({ idle: 1, making: 0, target: 1 });
    expect(await scene.call(entry)).toEqual({ startMode: "template", code: "first" });
    expect(scene.pool()).toMatchObject({ hits: 1, misses: 1 });
  });

  const modes: [StartMode, IdleStartMode, StartKind][] = [
    ["auto", "template", "template"],
    ["auto", "pool", "pool"],
    ["template", "pool", "template"],
    ["pool", "template", "pool"],
    ["cold", "template", "cold"],
  ];
  test.for(modes)(
    "of a tool with start: %s, in a profile with %s, comes by %s",
    async ([start, autoStart, startMode]) => {
      const scene = setUp({ profile: { ...restrictiveProfile, autoStart } });
      await using _ = scene.starts;
      const own = tool("a", { start });
      scene.starts.follow([own]);
      expect(await secondCall(scene, own)).toMatchObject({ startMode });
    },
  );

  const abilities: [readonly IdleStartMode[], boolean, StartKind][] = [
    [["pool"], true, "pool"],
    [[], true, "cold"],
    [["pool", "template"], false, "cold"],
  ];
  test.for(abilities)(
    "of a language that knows %j, where the technology knows any: %s, comes by %s",
    async ([knows, canAhead, startMode]) => {
      const scene = setUp();
      await using _ = scene.starts;
      Object.assign(scene.technology, { languageKnows: knows, canAhead });
      scene.starts.follow([entry]);
      expect(await secondCall(scene)).toMatchObject({ startMode });
    },
  );

  test("never gets a sandbox that another one had", async () => {
    const scene = setUp();
    await using _ = scene.starts;
    scene.starts.follow([tool("a", { warm: { min: 4, max: 4 } })]);
    await scene.rest();
    const seen = new Set<unknown>();
    for (let call = 0; call < 10; call++) {
      await using sandbox = await scene.acquire(entry);
      expect(seen.has(sandbox.sandbox)).toBe(false);
      seen.add(sandbox.sandbox);
      await run(sandbox);
      await scene.rest();
    }
    expect(scene.technology.violations).toEqual([]);
  });

  test("for which none waits gets a new one where there is a template", async () => {
    const scene = setUp();
    await using _ = scene.starts;
    const own = tool("a", { warm: { min: 0, max: 1 } });
    scene.starts.follow([own]);
    await secondCall(scene, own);
    await scene.rest();
    scene.technology.forkMs = 5;
    const kinds = Promise.all([scene.call(own), scene.call(own)]);
    await scene.pass(5);
    expect(await kinds).toMatchObject([{ startMode: "template" }, { startMode: "template" }]);
    expect(scene.pool()).toMatchObject({ hits: 2, misses: 2 });
  });

  test("does not wait long for a template that makes none", async () => {
    const scene = setUp();
    await using _ = scene.starts;
    scene.starts.follow([entry]);
    await scene.call(entry);
    await scene.rest();
    scene.technology.forkMs = Infinity;
    const calls = Promise.all([scene.call(entry), scene.call(entry)]);
    await scene.pass(forkTimeoutMs);
    expect(await calls).toMatchObject([{ startMode: "template" }, { startMode: "cold" }]);
    expect(scene.events()).toContain("warm_start.failed");
    await scene.rest();
    expect(scene.technology.count("template")).toBe(0);
  });

  test("that is given up while it waits for a template leaves nothing", async () => {
    const scene = setUp();
    await using starts = scene.starts;
    scene.starts.follow([entry]);
    await scene.call(entry);
    await scene.rest();
    scene.technology.forkMs = 10;
    await using _taken = await starts.acquire(entry, templateProfile, anySignal);
    const stop = new AbortController();
    const acquired = starts.acquire(entry, templateProfile, stop.signal);
    await scene.rest();
    stop.abort(new Error("given up"));
    await expect(acquired).rejects.toThrow("given up");
    expect(scene.technology.count("cold")).toBe(0);
    expect(scene.technology.violations).toEqual([]);
  });

  test("with a tighter profile has sandboxes of its own", async () => {
    const scene = setUp();
    await using _ = scene.starts;
    scene.starts.follow([tool("a", { warm: { min: 1, max: 4 } })]);
    await scene.rest();
    const tighter = { profile: restrictiveProfile };
    expect(await scene.call(entry, tighter)).toMatchObject({ startMode: "cold" });
    await scene.rest();
    expect(await scene.call(entry, tighter)).toMatchObject({ startMode: "pool" });
    expect(await scene.call(entry)).toMatchObject({ startMode: "template" });
  });

  test("for an entry that is not served leaves nothing that waits", async () => {
    const scene = setUp();
    await using _ = scene.starts;
    expect(await secondCall(scene)).toMatchObject({ startMode: "cold" });
    expect(scene.starts.stats).toEqual([]);
  });
});

describe("waiting sandboxes", () => {
  test("are made before the first call where the operator wants some", async () => {
    const scene = setUp();
    await using _ = scene.starts;
    const own = tool("a", { warm: { min: 3, max: 4 } });
    scene.starts.follow([own, tool("b")]);
    await scene.rest();
    expect(scene.starts.stats).toMatchObject([{ tool: "a", idle: 3, target: 3 }]);
    expect(await scene.call(own)).toMatchObject({ startMode: "template" });
  });

  test("grow with a burst of calls", async () => {
    const scene = setUp();
    await using _ = scene.starts;
    scene.starts.follow([entry]);
    await Promise.all(Array.from({ length: 4 }, () => scene.call(entry)));
    await scene.rest();
    expect(scene.pool()).toMatchObject({ idle: 6, target: 6 });
    await scene.pass(1_000);
    const kinds = await Promise.all(Array.from({ length: 6 }, () => scene.call(entry)));
    expect(kinds.every(({ startMode }) => startMode === "template")).toBe(true);
    expect(scene.pool()).toMatchObject({ hits: 6 });
  });

  test("are more for a tool that takes long to load", async () => {
    const scene = setUp({ profile: restrictiveProfile });
    await using _ = scene.starts;
    scene.technology.loadMs = 3_000;
    scene.starts.follow([entry]);
    for (let second = 0; second < 10; second++) {
      await scene.call(entry);
      await scene.pass(1_000, 100);
    }
    expect(scene.pool().target).toBeGreaterThanOrEqual(4);
  });

  test("are given back with their template when nobody has called for long", async () => {
    const scene = setUp();
    await using _ = scene.starts;
    scene.starts.follow([entry]);
    await scene.call(entry);
    await scene.pass(idleAfterMs - 5_000, 5_000);
    expect(scene.technology.count("parked")).toBe(1);
    await scene.pass(5_000);
    expect(scene.technology.open.size).toBe(0);
    expect(scene.events()).toContain("sandbox.idle_disposed");
    expect(scene.clock.sleeping).toBe(0);
  });

  test("are given back by the tool that has most, when all together take too much memory", async () => {
    const scene = setUp({ maxMebibytes: 20, profile: restrictiveProfile });
    await using _ = scene.starts;
    const [often, seldom] = [tool("often"), tool("seldom")];
    scene.starts.follow([often, seldom]);
    await Promise.all(Array.from({ length: 2 }, () => scene.call(seldom)));
    await scene.rest();
    expect(scene.starts.stats).toMatchObject([{ tool: "seldom", idle: 3 }]);
    await Promise.all(Array.from({ length: 3 }, () => scene.call(often)));
    await scene.rest();
    const all = Object.fromEntries(scene.starts.stats.map((pool) => [pool.tool, pool]));
    expect(all).toMatchObject({ often: { idle: 3, target: 3 }, seldom: { idle: 2 } });
    expect(scene.technology.count("parked") * scene.technology.parkedBytes).toBeLessThanOrEqual(
      20 * 1024 * 1024,
    );
  });

  test("are none where one takes more memory than all may, and that is tried once", async () => {
    const scene = setUp({ maxMebibytes: 3, profile: restrictiveProfile });
    await using _ = scene.starts;
    scene.starts.follow([entry]);
    await secondCall(scene);
    await secondCall(scene);
    expect(scene.technology.count("parked")).toBe(0);
    expect(scene.technology.begun.pool).toBe(1);
  });

  test("that end are given to nobody, and replaced", async () => {
    const scene = setUp({ profile: restrictiveProfile });
    await using _ = scene.starts;
    scene.starts.follow([entry]);
    await scene.call(entry);
    await scene.rest();
    scene.technology.crash("parked");
    await scene.rest();
    expect(await scene.call(entry)).toMatchObject({ startMode: "cold" });
    await scene.pass(500);
    expect(await scene.call(entry)).toMatchObject({ startMode: "pool" });
  });
});

describe("refills", () => {
  const busy = { cpus: 2, profile: restrictiveProfile };

  test("are no more at once than there are processors", async () => {
    const scene = setUp({ cpus: 3, profile: restrictiveProfile });
    await using _ = scene.starts;
    scene.technology.loadMs = 10;
    const warm = { min: 8, max: 8 };
    scene.starts.follow([tool("a", { warm }), tool("b", { warm })]);
    await scene.pass(200, 10);
    expect(scene.technology.count("parked")).toBe(16);
    expect(scene.technology.mostAtOnce).toBe(3);
  });

  test("go to the tool that lacks most", async () => {
    const scene = setUp({ cpus: 1, profile: restrictiveProfile });
    await using _ = scene.starts;
    scene.technology.loadMs = 10;
    const warm = { min: 2, max: 2 };
    scene.starts.follow([tool("a", { warm }), tool("b", { warm })]);
    await scene.pass(20, 10);
    expect(scene.starts.stats).toMatchObject([{ idle: 1 }, { idle: 1 }]);
  });

  const holds = (["some", "all"] as const).flatMap((load) =>
    (["pool", "template"] as const).map(
      (startMode) => [load, startMode, holdMs[load][startMode]] as const,
    ),
  );
  test.for(holds)(
    "stand back for calls that need %s of the processors, but by %s no longer than %d ms",
    async ([load, autoStart, ms]) => {
      const scene = setUp({ ...busy, profile: { ...restrictiveProfile, autoStart } });
      await using _ = scene.starts;
      const own = tool("a", { warm: { min: 2, max: 2 } });
      scene.starts.follow([own]);
      // Whatever was before.
      await scene.pass(10_000);
      scene.clock.advance(2_000);
      expect(scene.technology.count("parked")).toBe(2);
      await using first = await scene.acquire(own);
      await first.start("{}");
      await using second = load === "all" ? await scene.acquire(own) : undefined;
      await second?.start("{}");
      await scene.pass(ms - 1);
      expect(scene.pool()).toMatchObject({ idle: load === "all" ? 0 : 1, making: 0 });
      await scene.pass(1);
      expect(scene.pool().idle).toBeGreaterThan(load === "all" ? 0 : 1);
    },
  );

  test("do not stand back for calls that wait for calls of their own", async () => {
    const scene = setUp({ ...busy, suspendedCalls: () => 2 });
    await using _ = scene.starts;
    const own = tool("a", { warm: { min: 4, max: 4 } });
    scene.starts.follow([own]);
    await scene.rest();
    await using first = await scene.acquire(own);
    await first.start("{}");
    // Until then the tool goes first, and others that start do not make it longer.
    await scene.pass(soonMs / 2);
    await using second = await scene.acquire(own);
    await second.start("{}");
    await scene.pass(soonMs / 2 - 1);
    expect(scene.pool()).toMatchObject({ idle: 2, making: 0 });
    await scene.pass(1);
    expect(scene.pool()).toMatchObject({ idle: 4 });
  });

  test("stand back for a series of calls by tools while a fourth is left", async () => {
    const scene = setUp(busy);
    await using _ = scene.starts;
    const own = tool("a", { warm: { min: 4, max: 4 } });
    scene.starts.follow([own]);
    await scene.rest();
    const idle: number[] = [];
    for (let call = 0; call < 5; call++) {
      scene.series.note();
      await scene.call(own);
      await scene.rest();
      idle.push(scene.pool().idle);
    }
    // Too few are left then, but no more than that is made.
    expect(idle).toEqual([3, 2, 1, 1, 1]);
  });

  test.for(["pool", "template"] as const)(
    "stand back for a series that does not end, but by %s no longer than for a while",
    async (autoStart) => {
      const scene = setUp({ ...busy, profile: { ...restrictiveProfile, autoStart } });
      await using _ = scene.starts;
      const own = tool("a", { warm: { min: 2, max: 2 } });
      scene.starts.follow([own]);
      await scene.pass(10_000);
      scene.series.note();
      await scene.call(own);
      const stepMs = seriesGapMs / 2;
      for (let passedMs = 0; passedMs < holdMs.series[autoStart]; passedMs += stepMs) {
        expect(scene.pool()).toMatchObject({ idle: 1, making: 0 });
        scene.series.note();
        await scene.pass(stepMs);
      }
      expect(scene.pool()).toMatchObject({ idle: 2 });
    },
  );

  test("give up idle sandboxes during a series of calls, too", async () => {
    const scene = setUp(busy);
    await using _ = scene.starts;
    scene.starts.follow([tool("a", { warm: { min: 2, max: 2 } })]);
    await scene.rest();
    expect(scene.technology.count("parked")).toBe(2);
    scene.series.note();
    scene.starts.follow([]);
    await scene.rest();
    expect(scene.technology.count("parked")).toBe(0);
  });

  test("go on when a series of calls by tools is over", async () => {
    const scene = setUp(busy);
    await using _ = scene.starts;
    const own = tool("a", { warm: { min: 4, max: 4 } });
    scene.starts.follow([own]);
    await scene.rest();
    scene.series.note();
    for (let call = 0; call < 3; call++) await scene.call(own);
    await scene.pass(seriesGapMs - 1);
    expect(scene.pool()).toMatchObject({ idle: 1, making: 0 });
    await scene.pass(1);
    expect(scene.pool()).toMatchObject({ idle: 4 });
  });

  test("do not stand back for a call whose sandbox is gone, though its disposal waits", async () => {
    const scene = setUp(busy);
    await using _ = scene.starts;
    const own = tool("a", { warm: { min: 2, max: 2 } });
    scene.starts.follow([own]);
    await scene.rest();
    const gone = Promise.withResolvers<void>();
    scene.technology.ending = gone.promise;
    await using first = await scene.acquire(own);
    await first.start("{}");
    await scene.rest();
    expect(scene.pool()).toMatchObject({ idle: 1, making: 0 });
    gone.resolve();
    await scene.rest();
    expect(scene.pool()).toMatchObject({ idle: 2 });
  });

  test("stand back for the calls that are left, when one is gone and then disposed", async () => {
    const scene = setUp({ ...busy, cpus: 1 });
    await using _ = scene.starts;
    const own = tool("a", { warm: { min: 3, max: 3 } });
    scene.starts.follow([own]);
    await scene.rest();
    await using other = await scene.acquire(own);
    await other.start("{}");
    scene.technology.ending = Promise.resolve();
    const first = await scene.acquire(own);
    await first.start("{}");
    await scene.rest();
    await first[Symbol.asyncDispose]();
    await scene.pass(holdMs.some.template);
    expect(scene.pool()).toMatchObject({ idle: 1, making: 0 });
  });

  test("stand back once more for each, while calls need all processors", async () => {
    const scene = setUp(busy);
    await using _ = scene.starts;
    const own = tool("a", { warm: { min: 2, max: 2 } });
    scene.starts.follow([own]);
    await scene.rest();
    await using first = await scene.acquire(own);
    await using second = await scene.acquire(own);
    await Promise.all([first.start("{}"), second.start("{}")]);
    await scene.pass(holdMs.all.pool);
    expect(scene.pool()).toMatchObject({ idle: 1 });
    await scene.pass(holdMs.all.pool - 1);
    expect(scene.pool()).toMatchObject({ idle: 1 });
    await scene.pass(1);
    expect(scene.pool()).toMatchObject({ idle: 2 });
  });

  test("are made no more once no more calls are to come", async () => {
    const scene = setUp();
    await using _ = scene.starts;
    const own = tool("a", { warm: { min: 2, max: 2 } });
    scene.starts.follow([own]);
    await scene.rest();
    scene.starts.drain();
    for (const kind of ["template", "template", "template"] as const) {
      await using sandbox = await scene.acquire(own);
      expect(sandbox.startMode).toBe(kind);
    }
    await scene.pass(60_000);
    expect(scene.pool()).toMatchObject({ idle: 0, making: 0 });
  });

  test("are made as soon as no call runs", async () => {
    const scene = setUp(busy);
    await using _ = scene.starts;
    scene.starts.follow([entry]);
    {
      await using _first = await scene.acquire(entry);
      await using _second = await scene.acquire(entry);
      await scene.rest();
      expect(scene.technology.count("parked")).toBe(0);
    }
    await scene.rest();
    expect(scene.technology.count("parked")).toBe(3);
  });
});

describe("the end", () => {
  test("waits for what is being made, and gives everything back in its order", async () => {
    const scene = setUp();
    scene.starts.follow([tool("a", { warm: { min: 3, max: 3 } })]);
    await scene.rest();
    scene.technology.loadMs = 10;
    scene.starts.follow([
      tool("a", { warm: { min: 3, max: 3 } }),
      tool("b", { warm: { min: 3, max: 3 } }),
    ]);
    await scene.rest();
    expect(scene.technology.count("parked")).toBe(3);
    expect(scene.starts.stats).toMatchObject([{ idle: 3 }, { making: 1 }]);
    await scene.starts[Symbol.asyncDispose]();
    expect(scene.technology.open.size).toBe(0);
    expect(scene.technology.violations).toEqual([]);
    expect(scene.clock.sleeping).toBe(0);
  });

  test("of a template comes after that of a call whose sandbox was made from it", async () => {
    const scene = setUp();
    await using starts = scene.starts;
    starts.follow([entry]);
    await scene.call(entry);
    await scene.rest();
    {
      await using sandbox = await scene.acquire(entry);
      starts.follow([]);
      await scene.rest();
      expect(scene.technology.count("template")).toBe(1);
      expect(await run(sandbox)).toBe("first");
    }
    await scene.rest();
    expect(scene.technology.open.size).toBe(0);
    expect(scene.technology.violations).toEqual([]);
  });
});
