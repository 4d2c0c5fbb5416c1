/**
 * The manifest file followed for real: real files, real links, real file system events.
 */
import { execFileSync } from "node:child_process";
import {
  appendFile,
  mkdir,
  mkdtemp,
  rename,
  rm,
  symlink,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import {
  type CatalogOptions,
  openCatalog,
  type ToolCatalog,
} from "../../worker/manifest/catalog.ts";
import type { ManifestLog } from "../../worker/manifest/served.ts";
import {
  type ManifestChange,
  ManifestError,
  answeredTools,
} from "../../worker/manifest/manifest.ts";
import {
  type FileState,
  maxManifestBytes,
  readFileState,
  watchFile,
  type WatchOptions,
} from "../../worker/manifest/watch.ts";
import { publicRefusal } from "../../worker/protocol/refusal.ts";
import { type Clock, systemClock } from "../../worker/support/clock.ts";
import { Condition } from "../../worker/support/condition.ts";
import { inotifyWatches } from "../support/inotify-watches.ts";
import { profileNames, textOf } from "../unit/manifest/fixtures.ts";

/** Longer than any test: what is seen before was not seen by polling. */
const neverMs = 600_000;
/** In a hurry, yet long enough for a busy machine to write between two looks. */
const hurry = { pollMs: 50, settleMs: 50 };
const waiting = { timeout: 20_000, interval: 10 };

let dir: string;
let path: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "manifest-watch-"));
  path = join(dir, "manifest.yaml");
  onTestFinished(() => rm(dir, { recursive: true }));
});

/** Replaces the file as careful editors and deployment tools do. */
async function replace(text: string): Promise<void> {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
}

/**
 * Mounts `manifest.yaml` as the kubelet does: a link through `..data`, which is exchanged as a
 * whole.
 */
async function mountConfigMap(generation: number, text: string): Promise<void> {
  await mkdir(join(dir, `..v${generation}`));
  await writeFile(join(dir, `..v${generation}`, "manifest.yaml"), text);
  await symlink(`..v${generation}`, join(dir, "..data_tmp"));
  await rename(join(dir, "..data_tmp"), join(dir, "..data"));
  if (generation === 1) await symlink("..data/manifest.yaml", path);
  else await rm(join(dir, `..v${generation - 1}`), { recursive: true });
}

describe("a followed file", () => {
  /** What a state says, for comparison: its text or the reason why it has none. */
  function textOfState(state: FileState): string {
    return state.readable ? Buffer.from(state.bytes).toString() : `(${state.reason})`;
  }

  /** Follows `path` from its present state; gathers what it is told. */
  async function follow(options: Partial<WatchOptions> = {}): Promise<string[]> {
    const known = await readFileState(path);
    const end = new AbortController();
    const told: string[] = [];
    const watching = (async () => {
      const all = {
        clock: systemClock,
        known,
        hints: true,
        onHintsLost: () => {},
        ...hurry,
        ...options,
      };
      for await (const state of watchFile(path, all, end.signal)) told.push(textOfState(state));
    })();
    onTestFinished(async () => {
      end.abort();
      await watching;
    });
    return told;
  }

  describe.each([
    { how: "with file system events", hints: true },
    { how: "by polling alone", hints: false },
  ])("$how", ({ hints }) => {
    test("is told when it is edited", async () => {
      await writeFile(path, "one");
      const told = await follow({ hints });
      await writeFile(path, "two");
      await vi.waitFor(() => expect(told.at(-1)).toBe("two"), waiting);
      await appendFile(path, " and three");
      await vi.waitFor(() => expect(told.at(-1)).toBe("two and three"), waiting);
    });

    test("is told when another file takes its place, again and again", async () => {
      await writeFile(path, "0");
      const told = await follow({ hints });
      for (const text of ["1", "2", "3"]) {
        await replace(text);
        await vi.waitFor(() => expect(told.at(-1)).toBe(text), waiting);
      }
      expect(told).toEqual(["1", "2", "3"]);
    });

    test("is told when the links of a ConfigMap are exchanged, again and again", async () => {
      await mountConfigMap(1, "generation 1");
      const told = await follow({ hints });
      for (const generation of [2, 3, 4]) {
        await mountConfigMap(generation, `generation ${generation}`);
        await vi.waitFor(() => expect(told.at(-1)).toBe(`generation ${generation}`), waiting);
      }
      expect(told).toEqual(["generation 2", "generation 3", "generation 4"]);
    });

    test("is told when it is deleted and when it comes back, even as it was", async () => {
      await writeFile(path, "same");
      const told = await follow({ hints });
      await rm(path);
      await vi.waitFor(() => expect(told).toEqual(["(does not exist)"]), waiting);
      await replace("same");
      await vi.waitFor(() => expect(told).toEqual(["(does not exist)", "same"]), waiting);
    });

    test("is told when it appears after the start", async () => {
      const told = await follow({ hints });
      await replace("new");
      await vi.waitFor(() => expect(told).toEqual(["new"]), waiting);
    });
  });

  test("is looked at as soon as an event says so", async () => {
    await writeFile(path, "0");
    const told = await follow({ pollMs: neverMs });
    let edits = 0;
    // Again and again: events before the watcher is ready, and some after, are lost.
    await vi.waitFor(
      async () => {
        await replace(String(++edits));
        await vi.waitFor(() => expect(told.at(-1)).toBe(String(edits)), { timeout: 2000 });
      },
      { ...waiting, timeout: 40_000 },
    );
  });

  test("is told once for many writes in a row, with the last of them", async () => {
    await writeFile(path, "0");
    const written = Promise.withResolvers<void>();
    const settleMs = 1;
    // However slow the writing is, it does not settle before its end.
    const sleep: Clock["sleep"] = (ms, signal) =>
      ms === settleMs ? written.promise : systemClock.sleep(ms, signal);
    const told = await follow({ settleMs, clock: { ...systemClock, sleep } });
    for (let i = 1; i <= 200; i++) await replace(String(i));
    written.resolve();
    await vi.waitFor(() => expect(told.at(-1)).toBe("200"), waiting);
    expect(told).toEqual(["200"]);
  });

  test("is not told while it is written in pieces", async () => {
    await writeFile(path, "old");
    const looks = steppedClock();
    const told = await follow({ hints: false, clock: looks.clock });
    await truncate(path);
    for (const piece of ["one ", "two ", "three"]) {
      await looks.next();
      await appendFile(path, piece);
    }
    await looks.next();
    expect(told).toEqual([]);
    await looks.next();
    expect(told).toEqual(["one two three"]);
  });

  test("is told newest when the listener was busy meanwhile", async () => {
    await writeFile(path, "0");
    const known = await readFileState(path);
    const options = { clock: systemClock, known, hints: true, onHintsLost: () => {}, ...hurry };
    const states = watchFile(path, options, new AbortController().signal);
    onTestFinished(async () => void (await states.return()));
    const first = states.next();
    await replace("1");
    expect(textOfState((await first).value as FileState)).toBe("1");
    for (const text of ["2", "3", "4"]) await replace(text);
    expect(textOfState((await states.next()).value as FileState)).toBe("4");
  });

  test("is not told when only its time stamp or inode changes", async () => {
    await writeFile(path, "same");
    const looks = countingClock();
    const told = await follow({ clock: looks.clock });
    await utimes(path, new Date(), new Date(Date.now() + 60_000));
    await replace("same");
    const before = looks.begun;
    await vi.waitFor(() => expect(looks.begun).toBeGreaterThan(before + 3), waiting);
    expect(told).toEqual([]);
  });

  test("is read up to its limit and no further", async () => {
    await writeFile(path, "x".repeat(maxManifestBytes));
    expect(await readFileState(path)).toMatchObject({ readable: true });
    await appendFile(path, "x");
    expect(await readFileState(path)).toEqual({
      readable: false,
      reason: `is larger than ${maxManifestBytes} bytes`,
    });
  });

  test("is not a directory, a pipe that nobody writes to, or an endless device", async () => {
    execFileSync("mkfifo", [path]);
    for (const other of [path, dir, "/dev/zero"]) {
      expect(await readFileState(other)).toEqual({
        readable: false,
        reason: "is not a regular file",
      });
    }
    expect(await readFileState(join("/dev/null", "x"))).toEqual({
      readable: false,
      reason: "cannot be read (ENOTDIR)",
    });
  });

  test("leaves no watcher and no timer behind", async () => {
    await writeFile(path, "0");
    const before = await inotifyWatches();
    const { clock, pending } = countingClock();
    const end = new AbortController();
    const known = await readFileState(path);
    const options = { clock, known, hints: true, onHintsLost: () => {}, pollMs: neverMs };
    const next = watchFile(path, options, end.signal).next();
    await vi.waitFor(async () => expect(await inotifyWatches()).toBe(before + 1), waiting);
    expect(pending()).toBe(1);
    end.abort();
    expect(await next).toEqual({ done: true, value: undefined });
    expect(pending()).toBe(0);
    await vi.waitFor(async () => expect(await inotifyWatches()).toBe(before), waiting);
  });
});

/** The machine's time, with the number of sleeps begun and under way. */
function countingClock(): { clock: Clock; begun: number; pending: () => number } {
  let pending = 0;
  const counts = {
    begun: 0,
    pending: () => pending,
    clock: {
      ...systemClock,
      async sleep(ms: number, signal?: AbortSignal): Promise<void> {
        counts.begun++;
        pending++;
        try {
          await systemClock.sleep(ms, signal);
        } finally {
          pending--;
        }
      },
    },
  };
  return counts;
}

/**
 * A clock on which every sleep lasts until the test says so, for a follower without events: one
 * sleep before each look.
 */
function steppedClock(): { readonly clock: Clock; next(): Promise<void> } {
  let sleeping: (() => void) | undefined;
  const isSleeping = (): Promise<void> =>
    vi.waitFor(() => expect(sleeping).toBeDefined(), { ...waiting, interval: 1 });
  return {
    clock: {
      ...systemClock,
      sleep: (_ms, signal) =>
        new Promise((resolve, reject) => {
          sleeping = resolve;
          signal?.addEventListener("abort", () => reject(signal.reason as Error));
        }),
    },
    /** Has the follower look once, and waits until it has told what it saw. */
    async next() {
      await isSleeping();
      sleeping?.();
      sleeping = undefined;
      await isSleeping();
    },
  };
}

describe("the catalog", () => {
  interface Logged {
    readonly level: keyof ManifestLog;
    readonly event: string;
    readonly facts: Record<string, unknown>;
  }

  /** Opens a catalog on `path`, in a hurry, that is closed with the test. */
  async function open(
    options: Partial<CatalogOptions> = {},
  ): Promise<{ catalog: ToolCatalog; logged: Logged[] }> {
    const logged: Logged[] = [];
    const at =
      (level: keyof ManifestLog) =>
      (line: object): void => {
        const { event, ...facts } = line as { readonly event: string };
        logged.push({ level, event, facts });
      };
    const catalog = await openCatalog({
      path,
      profileNames,
      log: { info: at("info"), warn: at("warn"), error: at("error") },
      clock: systemClock,
      signal: new AbortController().signal,
      intervals: hurry,
      ...options,
    });
    onTestFinished(() => catalog[Symbol.asyncDispose]());
    return { catalog, logged };
  }

  function names(catalog: ToolCatalog): string[] {
    return [...catalog.manifest.tools.keys()];
  }

  async function nextOf(changes: AsyncIterator<ManifestChange>): Promise<ManifestChange> {
    const step = await changes.next();
    if (step.done === true) throw new Error("the changes have ended");
    return step.value;
  }

  function eventsOf(logged: readonly Logged[]): string[] {
    return logged.map(({ level, event }) => `${level}: ${event}`);
  }

  const withPackage = (version: string): string =>
    `version: 1\ntools: {plain: {module: m, function: f}, packed: {module: m, function: f, package: p, version: "${version}"}}`;

  describe("does not open", () => {
    test("on a broken manifest", async () => {
      await writeFile(path, "version: 1\ntools: {a: {module: m}}");
      const opening = open();
      await expect(opening).rejects.toThrow(ManifestError);
      await expect(opening).rejects.toThrow(`${path}:2:9: tool "a": function: required`);
    });

    test("without a manifest", async () => {
      await expect(open()).rejects.toThrow(`${path}: does not exist`);
    });

    test("when it is called off while a tool is looked into", async () => {
      await writeFile(path, withPackage(">=1"));
      const calledOff = new AbortController();
      const opening = open({
        signal: calledOff.signal,
        admit: (_tool, signal) => {
          queueMicrotask(() => calledOff.abort(new Error("enough")));
          return systemClock.sleep(neverMs, signal).then(() => undefined);
        },
      });
      await expect(opening).rejects.toThrow("enough");
    });
  });

  test("serves what the file says and follows it", async () => {
    await writeFile(path, textOf("a", "b"));
    const { catalog, logged } = await open();
    expect(names(catalog)).toEqual(["a", "b"]);
    expect(catalog.resolve("a")).toMatchObject({ name: "a", module: "tools" });
    expect(catalog.resolve("c")).toBeUndefined();
    expect(catalog.resolve("constructor")).toBeUndefined();

    const changes = catalog.changes[Symbol.asyncIterator]();
    await replace(textOf("b", "c").replace("run", "walk"));
    const change = await nextOf(changes);
    expect(change).toEqual({
      manifest: catalog.manifest,
      added: ["c"],
      removed: ["a"],
      changed: ["b"],
    });
    expect(catalog.resolve("b")).toMatchObject({ callable: { name: "walk" } });
    expect(catalog.resolve("a")).toBeUndefined();
    expect(logged).toEqual([
      {
        level: "info",
        event: "manifest.loaded",
        facts: expect.objectContaining({ tools: 2, added: ["a", "b"] }) as object,
      },
      {
        level: "info",
        event: "manifest.loaded",
        facts: {
          revision: catalog.manifest.revision,
          tools: 2,
          added: ["c"],
          removed: ["a"],
          changed: ["b"],
        },
      },
    ]);
  });

  test("is followed by every catalog on the file", async () => {
    await writeFile(path, textOf("a"));
    const { catalog: one } = await open();
    const { catalog: two } = await open({ hints: false });
    await replace(textOf("a", "b"));
    await vi.waitFor(() => {
      expect(names(one)).toEqual(["a", "b"]);
      expect(names(two)).toEqual(["a", "b"]);
    }, waiting);
  });

  test.for([
    ["broken", "version: 1\ntools: {a: {module: m"],
    ["empty", ""],
    ["cut off", "version: 1\ntools:\n"],
    ["too large", `${textOf("x")}${"#".repeat(maxManifestBytes)}`],
    ["gone", undefined],
  ] as const)("keeps the last good manifest while the file is %s", async ([, text]) => {
    await writeFile(path, textOf("a"));
    const { catalog, logged } = await open();
    const good = catalog.manifest;
    await (text === undefined ? rm(path) : replace(text));
    await vi.waitFor(() => {
      expect(logged.at(-1)).toEqual({
        level: "error",
        event: "manifest.unusable",
        facts: {
          err: expect.any(ManifestError),
          revision: good.revision,
        },
      });
    }, waiting);
    expect(catalog.manifest).toBe(good);

    await replace(textOf("a", "b"));
    await vi.waitFor(() => expect(names(catalog)).toEqual(["a", "b"]), waiting);
    expect(eventsOf(logged)).toEqual([
      "info: manifest.loaded",
      "error: manifest.unusable",
      "info: manifest.usable_again",
      "info: manifest.loaded",
    ]);
  });

  test("says once what is wrong with a content, and again when it is another", async () => {
    await writeFile(path, textOf("a"));
    const looks = countingClock();
    const { logged } = await open({ clock: looks.clock });
    for (const broken of ["tools: 1", "tools: 2"]) {
      await replace(broken);
      await vi.waitFor(
        () => expect(String(logged.at(-1)?.facts["err"])).toContain(`found ${broken.at(-1)}`),
        waiting,
      );
      const before = looks.begun;
      await vi.waitFor(() => expect(looks.begun).toBeGreaterThan(before + 5), waiting);
    }
    expect(eventsOf(logged)).toEqual([
      "info: manifest.loaded",
      "error: manifest.unusable",
      "error: manifest.unusable",
    ]);
  });

  test("says which keys are not used", async () => {
    await writeFile(path, "version: 1\ntools: {}\nowner: me");
    const { catalog, logged } = await open();
    const warnings = [
      `${path}:3:1: owner: unknown key, not used; the keys are version, credentials, tools`,
    ];
    expect(logged[0]).toEqual({
      level: "warn",
      event: "manifest.has_warnings",
      facts: { warnings },
    });
    expect(catalog.warnings).toEqual(warnings);
  });

  test("loses no change to calls that arrive meanwhile", async () => {
    await writeFile(path, textOf("a"));
    const { catalog } = await open();
    const change = nextOf(catalog.changes[Symbol.asyncIterator]());
    await replace(textOf("a", "b"));
    await vi.waitFor(() => expect(catalog.resolve("b")).toBeDefined(), waiting);
    expect((await change).added).toEqual(["b"]);
  });

  describe("tells changes", () => {
    test("to a late listener in one step from the opening to now", async () => {
      await writeFile(path, textOf("a", "b"));
      const { catalog } = await open();
      for (const next of [
        ["b", "c"],
        ["b", "c", "d"],
        ["c", "d", "e"],
      ]) {
        await replace(textOf(...next));
        await vi.waitFor(() => expect(names(catalog)).toEqual(next), waiting);
      }
      for (let listener = 0; listener < 2; listener++) {
        const change = await nextOf(catalog.changes[Symbol.asyncIterator]());
        expect(change).toMatchObject({ added: ["c", "d", "e"], removed: ["a", "b"], changed: [] });
      }
    });

    test("to a slow listener in one step from where it was to now", async () => {
      await writeFile(path, textOf("a"));
      const { catalog } = await open();
      const changes = catalog.changes[Symbol.asyncIterator]();
      await replace(textOf("a", "b"));
      expect((await nextOf(changes)).added).toEqual(["b"]);
      for (const next of [
        ["a", "b", "c"],
        ["b", "c", "d"],
      ]) {
        await replace(textOf(...next));
        await vi.waitFor(() => expect(names(catalog)).toEqual(next), waiting);
      }
      expect(await nextOf(changes)).toMatchObject({ added: ["c", "d"], removed: ["a"] });
    });

    test("only when the tools changed, not for a comment or what was undone", async () => {
      await writeFile(path, textOf("a"));
      const { catalog } = await open();
      const change = nextOf(catalog.changes[Symbol.asyncIterator]());
      const first = catalog.manifest.revision;
      await replace(`# a comment\n${textOf("a")}`);
      await vi.waitFor(() => expect(catalog.manifest.revision).not.toBe(first), waiting);
      await replace(textOf("a", "b"));
      expect(await change).toMatchObject({ added: ["b"], removed: [], changed: [] });
    });

    test("until it is closed", async () => {
      await writeFile(path, textOf("a"));
      const { catalog } = await open();
      const waitingForOne = catalog.changes[Symbol.asyncIterator]().next();
      await catalog[Symbol.asyncDispose]();
      await catalog[Symbol.asyncDispose]();
      expect(await waitingForOne).toEqual({ done: true, value: undefined });
      expect(await catalog.changes[Symbol.asyncIterator]().next()).toMatchObject({ done: true });
      expect(names(catalog)).toEqual(["a"]);
    });

    test("or says that it can no longer follow the file", async () => {
      await writeFile(path, textOf("a"));
      const broken = new Error("the clock stopped");
      const clock = { ...systemClock, sleep: () => Promise.reject(broken) };
      const { catalog, logged } = await open({ clock });
      await expect(catalog.changes[Symbol.asyncIterator]().next()).rejects.toBe(broken);
      expect(logged.at(-1)).toEqual({
        level: "error",
        event: "manifest.follow_failed",
        facts: { err: broken },
      });
    });
  });

  describe("does not serve a tool that cannot run here", () => {
    test("and says why", async () => {
      await writeFile(path, withPackage(">=1"));
      const asked: string[] = [];
      const { catalog, logged } = await open({
        admit: async (entry) => {
          asked.push(entry.name);
          return entry.packages && publicRefusal('package "p" is not installed');
        },
      });
      expect(names(catalog)).toEqual(["plain"]);
      expect(catalog.resolve("packed")).toBeUndefined();
      expect([...catalog.manifest.unavailable]).toEqual([
        ["packed", expect.objectContaining(publicRefusal('package "p" is not installed'))],
      ]);
      expect(asked).toEqual(["plain", "packed"]);
      expect(logged.at(-1)).toEqual({
        level: "warn",
        event: "tool.not_served",
        facts: {
          tool: "packed",
          reason: 'package "p" is not installed',
        },
      });
    });

    test("or that cannot be looked into", async () => {
      await writeFile(path, withPackage(">=1"));
      const { catalog } = await open({
        admit: (entry) => entry.packages && Promise.reject(new Error("no interpreter")),
      });
      expect(catalog.unavailable("packed")).toMatchObject({
        reason: "could not be checked: no interpreter",
        publicReason: "the worker could not check it",
      });
    });

    test("until it can, without any change to the file", async () => {
      await writeFile(path, withPackage(">=1"));
      let reason: string | undefined = "not installed";
      let asked = 0;
      const { catalog, logged } = await open({
        intervals: { ...hurry, recheckMs: 20 },
        admit: async (entry) => {
          if (entry.packages === undefined) return undefined;
          asked++;
          return publicRefusal(reason);
        },
      });
      await vi.waitFor(() => expect(asked).toBeGreaterThan(3), waiting);
      const change = nextOf(catalog.changes[Symbol.asyncIterator]());
      reason = undefined;
      expect((await change).added).toEqual(["packed"]);
      expect(catalog.manifest.unavailable.size).toBe(0);
      expect(eventsOf(logged)).toEqual([
        "info: manifest.loaded",
        "warn: tool.not_served",
        "info: manifest.loaded",
      ]);
    });

    test("and tells of one that came or went, for its calls are answered", async () => {
      await writeFile(path, textOf("plain"));
      const { catalog } = await open({
        admit: async (entry) => entry.packages && publicRefusal("not installed"),
      });
      const changes = catalog.changes[Symbol.asyncIterator]();
      const came = nextOf(changes);
      await replace(`${textOf("plain")}  packed: {module: m, function: f, package: p}\n`);
      expect(await came).toMatchObject({ added: [], removed: [], changed: [] });
      expect([...answeredTools(catalog.manifest).keys()]).toEqual(["plain", "packed"]);
      const went = nextOf(changes);
      await replace(textOf("plain"));
      expect([...answeredTools((await went).manifest).keys()]).toEqual(["plain"]);
    });

    test("and asks again only about what changed", async () => {
      await writeFile(path, withPackage(">=1"));
      const asked: string[] = [];
      const { catalog } = await open({
        intervals: { ...hurry, recheckMs: 20 },
        admit: async (entry) => void asked.push(entry.packages?.requirements[0] ?? entry.name),
      });
      await replace(withPackage(">=1").replace("plain", "renamed"));
      await vi.waitFor(() => expect(catalog.resolve("renamed")).toBeDefined(), waiting);
      await replace(withPackage(">=2"));
      await vi.waitFor(() => expect(catalog.resolve("plain")).toBeDefined(), waiting);
      expect(asked).toEqual(["plain", "p>=1", "renamed", "plain", "p>=2"]);
    });

    test("and serves the old entry while it looks into the new one", async () => {
      await writeFile(path, withPackage(">=1"));
      const verdict = Promise.withResolvers<undefined>();
      const asked = Promise.withResolvers<void>();
      const { catalog } = await open({
        admit: (entry) => {
          if (entry.packages?.requirements[0] !== "p>=2") return undefined;
          asked.resolve();
          return verdict.promise;
        },
      });
      await replace(withPackage(">=2"));
      await asked.promise;
      expect(catalog.resolve("packed")?.packages?.requirements).toEqual(["p>=1"]);
      verdict.resolve(undefined);
      await vi.waitFor(
        () => expect(catalog.resolve("packed")?.packages?.requirements).toEqual(["p>=2"]),
        waiting,
      );
    });

    test("until a change is told, and keeps an entry that is served meanwhile", async () => {
      await writeFile(path, withPackage(">=1"));
      let isInstalled = false;
      const installed = new Condition();
      const { catalog } = await open({
        admit: async ({ packages }) => {
          const isNew = packages?.requirements[0] === "p>=2";
          return isNew && !isInstalled
            ? { ...publicRefusal("being installed"), keepsServed: true }
            : undefined;
        },
        admitChanged: () => installed.changed,
      });
      const requirements = () => catalog.resolve("packed")?.packages?.requirements;
      await replace(withPackage(">=2").replace("plain", "renamed"));
      await vi.waitFor(() => expect(catalog.resolve("renamed")).toBeDefined(), waiting);
      expect(requirements()).toEqual(["p>=1"]);
      expect(catalog.manifest.unavailable.size).toBe(0);
      isInstalled = true;
      installed.notify();
      await vi.waitFor(() => expect(requirements()).toEqual(["p>=2"]), waiting);
    });

    test("and stops looking when it is closed", async () => {
      await writeFile(path, textOf("a"));
      const asked = Promise.withResolvers<void>();
      const { catalog, logged } = await open({
        admit: (entry, signal) => {
          if (entry.packages === undefined) return undefined;
          asked.resolve();
          return systemClock.sleep(neverMs, signal).then(() => undefined);
        },
      });
      await replace(withPackage(">=1"));
      await asked.promise;
      await catalog[Symbol.asyncDispose]();
      expect(names(catalog)).toEqual(["a"]);
      expect(eventsOf(logged)).toEqual(["info: manifest.loaded"]);
    });
  });
});
