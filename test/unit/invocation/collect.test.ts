/**
 * What a tool left in output/ on its way into the store.
 */
import { link, mkdir, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { Writable } from "node:stream";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createMemoryStore } from "../../../worker/artifacts/memory/store.ts";
import {
  type ArtifactStore,
  NotDeletedError,
  StoreError,
} from "../../../worker/artifacts/store.ts";
import { checkOutputs } from "../../../worker/invocation/steps/check-outputs.ts";
import {
  type Collection,
  Outputs,
  maxSaving,
  saveOutputs,
} from "../../../worker/invocation/steps/collect.ts";
import type { OutputNote } from "../../../worker/invocation/steps/result.ts";
import { Transfers } from "../../../worker/invocation/steps/transfers.ts";
import type { InvocationError } from "../../../worker/protocol/errors.ts";
import type { WorkDir } from "../../../worker/sandbox/work/work-dir.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { newWorkDir } from "../../support/sandboxes/work-dir.ts";

const never = new AbortController().signal;
const scope = { root: "ns", userId: "user-42", sessionId: "web-1" };
const limits = {
  maxBytes: 2_000,
  callMaxBytes: 8_000,
  maxOutputs: 100,
  fileSizeBytes: 1_000,
  diskBytes: 4_000,
};
const noNotes = new Map<string, OutputNote>();

interface Left {
  readonly workDir: WorkDir;
  readonly output: string;
  readonly store: ArtifactStore;
  readonly logged: string[];
  readonly collect: (
    notes?: ReadonlyMap<string, OutputNote>,
    changes?: Partial<Collection>,
    signal?: AbortSignal,
  ) => ReturnType<typeof saveOutputs>;
}

/** A work directory with outputs, by name, and a store for them. */
async function leave(outputs: Readonly<Record<string, string>> = {}): Promise<Left> {
  const workDir = await newWorkDir();
  onTestFinished(() => workDir[Symbol.asyncDispose]());
  const output = join(workDir.path, "output");
  for (const [name, content] of Object.entries(outputs))
    await writeFile(join(output, name), content);
  const store = createMemoryStore();
  const logged: string[] = [];
  const log = createLogger(
    "debug",
    new Writable({
      write: (chunk: Buffer, _encoding, done) => (logged.push(chunk.toString()), done()),
    }),
  );
  const transfers = new Transfers();
  const limitMs = 60_000;
  const collection = { store, scope, limits, transfers, clock: systemClock, log, limitMs };
  return {
    workDir,
    output,
    store,
    logged,
    collect: async (notes = noNotes, changes = {}, signal = never) => {
      const changed = { ...collection, ...changes };
      await using outputs = new Outputs(workDir, changed.limits.maxOutputs);
      return await saveOutputs(checkOutputs(await outputs.left(), notes, changed), changed, signal);
    },
  };
}

async function saved(store: ArtifactStore, filename: string): Promise<string> {
  const { body } = await store.open(scope, { filename, version: undefined }, never);
  return text(body);
}

function refused(message: string | RegExp) {
  return expect.objectContaining({
    name: "InvocationError",
    code: "ARTIFACT_ERROR",
    message: expect.stringMatching(message) as unknown,
  }) as InvocationError;
}

describe("the files in output/", () => {
  test("are saved in order of name, with the type that their names tell", async () => {
    const { collect, store } = await leave({
      "b.txt": "second",
      "a.csv": "first",
      "no ending": "",
    });
    expect(await collect()).toEqual([
      { filename: "a.csv", version: 0, mimeType: "text/csv", sizeBytes: 5, description: undefined },
      {
        filename: "b.txt",
        version: 0,
        mimeType: "text/plain",
        sizeBytes: 6,
        description: undefined,
      },
      {
        filename: "no ending",
        version: 0,
        mimeType: "application/octet-stream",
        sizeBytes: 0,
        description: undefined,
      },
    ]);
    expect(await saved(store, "a.csv")).toBe("first");
    expect(await saved(store, "no ending")).toBe("");
  });

  test("are saved a few at a time, and answered in order of name", async () => {
    const names = Array.from({ length: 20 }, (_, index) => String.fromCodePoint(97 + index));
    const { collect, store } = await leave(Object.fromEntries(names.map((name) => [name, name])));
    let [running, peak] = [0, 0];
    const save: ArtifactStore["save"] = async (...args) => {
      peak = Math.max(peak, ++running);
      const artifact = await store.save(...args);
      running--;
      return artifact;
    };
    const deleteVersion = store.deleteVersion.bind(store);
    const created = await collect(noNotes, { store: { save, deleteVersion } });
    expect(created.map(({ filename }) => filename)).toEqual(names);
    expect(peak).toBe(maxSaving);
  });

  test("have the type and description that the tool gave them", async () => {
    const { collect, store } = await leave({ "a.csv": "x", "b.csv": "y" });
    const notes = new Map([
      ["a.csv", { mimeType: "text/x-rows", description: "All rows" }],
      ["b.csv", { mimeType: undefined, description: "Some rows" }],
      ["c.csv", { mimeType: "text/csv", description: "There is no such file" }],
    ]);
    expect(await collect(notes)).toMatchObject([
      { filename: "a.csv", mimeType: "text/x-rows", description: "All rows" },
      { filename: "b.csv", mimeType: "text/csv", description: "Some rows" },
    ]);
    const { metadata, body } = await store.open(scope, { filename: "a.csv", version: 0 }, never);
    body.destroy();
    expect(metadata.mimeType).toBe("text/x-rows");
  });

  test("become new versions of artifacts that exist", async () => {
    const { collect } = await leave({ "a.csv": "x" });
    await collect();
    expect(await collect()).toMatchObject([{ filename: "a.csv", version: 1 }]);
  });

  test("are all there is: links and directories are left out, and the log says so", async () => {
    const { collect, output, logged } = await leave({ "a.csv": "x", "twice.csv": "y" });
    await mkdir(join(output, "directory"));
    await symlink("/etc/hostname", join(output, "link"));
    await link(join(output, "twice.csv"), join(output, "again.csv"));
    expect((await collect()).map(({ filename }) => filename)).toEqual(["a.csv"]);
    const { count, names } = JSON.parse(logged[0]!) as { count: number; names: string[] };
    expect(count).toBe(4);
    expect(names.toSorted()).toEqual(["again.csv", "directory", "link", "twice.csv"]);
  });

  test("may be none", async () => {
    const { collect, logged } = await leave();
    expect(await collect()).toEqual([]);
    expect(logged).toEqual([]);
  });
});

describe("outputs beyond the bounds", () => {
  test("because one is larger than the profile allows are refused by name and size", async () => {
    const { collect, output, store } = await leave({ "a.txt": "fine" });
    await writeFile(join(output, "z.txt"), "x".repeat(1_001));
    await expect(collect()).rejects.toThrow(
      refused(
        /^Artifacts could not be saved: output "z.txt" has 1001 bytes, at most 1000 are allowed$/,
      ),
    );
    expect(await store.versions(scope, "a.txt", never)).toEqual([]);
    await truncate(join(output, "z.txt"), 1_000);
    expect(await collect()).toHaveLength(2);
  });

  test(
    "because one says it is huge are refused, though it takes no room",
    { tags: "promise-O2" },
    async () => {
      const { collect, output } = await leave({ sparse: "" });
      await truncate(join(output, "sparse"), 2 ** 40);
      await expect(collect()).rejects.toThrow(refused(/has 1099511627776 bytes/));
    },
  );

  test("because they are too much together are refused with the sum", async () => {
    const names = ["a", "b", "c", "d"];
    const { collect, output } = await leave(
      Object.fromEntries(names.map((name) => [name, "x".repeat(1_000)])),
    );
    expect(await collect()).toHaveLength(4);
    await writeFile(join(output, "e"), "x");
    await expect(collect()).rejects.toThrow(
      refused(/: outputs have 4001 bytes together, at most 4000 are allowed$/),
    );
  });

  test("because one grows while it is read are refused", { tags: "promise-O2" }, async () => {
    const { collect, output, store } = await leave({ "a.txt": "as it was measured" });
    // Who has a descriptor of the file need not be a process of the sandbox.
    const save: ArtifactStore["save"] = async (...args) => {
      await truncate(join(output, "a.txt"), 2 ** 40);
      return store.save(...args);
    };
    const { deleteVersion } = store;
    await expect(collect(noNotes, { store: { save, deleteVersion } })).rejects.toThrow(
      refused(/more than the announced 18 bytes arrived/),
    );
    expect(await store.versions(scope, "a.txt", never)).toEqual([]);
  });

  test("of the operator are refused with both sizes", async () => {
    const { collect, store } = await leave({ "a.txt": "12345", "b.txt": "12345" });
    const save = vi.spyOn(store, "save");
    const within = (changes: Partial<Collection["limits"]>) =>
      collect(noNotes, { limits: { ...limits, ...changes } });
    await expect(within({ maxBytes: 4 })).rejects.toThrow(
      refused(/: output "a.txt" has 5 bytes, at most 4 are allowed$/),
    );
    await expect(within({ callMaxBytes: 9 })).rejects.toThrow(
      refused(/: outputs have 10 bytes together, at most 9 are allowed$/),
    );
    await expect(within({ maxOutputs: 1 })).rejects.toThrow(
      refused(/: there are 2 output files or more, at most 1 are allowed$/),
    );
    expect(save).not.toHaveBeenCalled();
    expect(await within({ maxBytes: 5, callMaxBytes: 10, maxOutputs: 2 })).toHaveLength(2);
  });

  test("because there are more than 100 are refused", { tags: "promise-O2" }, async () => {
    const names = Array.from({ length: 100 }, (_, index) => `file-${index}`);
    const { collect, output } = await leave(Object.fromEntries(names.map((name) => [name, "x"])));
    expect(await collect()).toHaveLength(100);
    await writeFile(join(output, "one more"), "x");
    await expect(collect()).rejects.toThrow(
      refused(/: there are 101 output files or more, at most 100 are allowed$/),
    );
  });
});

describe("an output in a sub-directory", () => {
  test("fails the call by its path before anything is saved", async () => {
    const { collect, output, store } = await leave({ "a.txt": "fine" });
    await mkdir(join(output, "empty/deeper"), { recursive: true });
    await mkdir(join(output, "charts/2026"), { recursive: true });
    await writeFile(join(output, "charts/2026/may\u202e.png"), "x");
    const save = vi.spyOn(store, "save");
    await expect(collect()).rejects.toThrow(
      refused(
        /^Artifacts could not be saved: output "charts\/2026\/may\\u\{202e\}.png" is in a sub-directory, files must be directly in output\/$/,
      ),
    );
    expect(save).not.toHaveBeenCalled();
  });
});

describe("an output that cannot be saved", () => {
  test("is named, in characters that do nothing to a terminal, with what the store says", async () => {
    const { collect, output } = await leave({ "a.txt": "fine" });
    await writeFile(join(output, "b\nc\u001b\u202e.txt"), "x");
    await expect(collect()).rejects.toThrow(
      refused(
        /^Artifacts could not be saved: the name of output "b\\nc\\u001b\\u\{202e\}.txt" holds /,
      ),
    );
  });

  test("keeps the store's failure for the log", async () => {
    const { collect } = await leave({ "a.txt": "x" });
    const failure = new StoreError("unavailable", "the store is full");
    const save = () => Promise.reject(failure);
    await expect(collect(noNotes, { store: { ...createMemoryStore(), save } })).rejects.toThrow(
      expect.objectContaining({ code: "ARTIFACT_ERROR", cause: failure }),
    );
  });

  test("because the call is given up has the signal's reason as its cause", async () => {
    const { collect } = await leave({ "a.txt": "x" });
    const reason = new Error("shut down");
    await expect(collect(noNotes, {}, AbortSignal.abort(reason))).rejects.toMatchObject({
      cause: reason,
    });
  });

  test("because of a fault of the worker is answered so, without its text", async () => {
    const { collect, store } = await leave({ "a.txt": "x", "b.txt": "y" });
    const fault = new TypeError("undefined is not a function");
    const saved = Promise.withResolvers<void>();
    const save: ArtifactStore["save"] = async (of, filename, ...rest) => {
      if (filename === "a.txt") return store.save(of, filename, ...rest).finally(saved.resolve);
      await saved.promise;
      throw fault;
    };
    const deleteVersion = () => Promise.reject(new StoreError("unavailable", "it is away"));
    await expect(collect(noNotes, { store: { save, deleteVersion } })).rejects.toMatchObject({
      code: "INTERNAL_ERROR",
      message:
        'The worker could not save the outputs. These outputs could not be deleted: "a.txt" version 0.',
      cause: fault,
      remainingArtifacts: [{ filename: "a.txt", version: 0 }],
    });
  });
});

describe("outputs of which one cannot be saved", () => {
  /** A store that fails to save `z.txt` when it has saved so many others. */
  function failing(store: ArtifactStore, others = 0): Collection["store"] {
    const saved = Promise.withResolvers<void>();
    let missing = others;
    const save: ArtifactStore["save"] = async (of, filename, ...rest) => {
      if (filename === "z.txt") {
        if (others > 0) await saved.promise;
        throw new StoreError("unavailable", "the store is full.");
      }
      const artifact = await store.save(of, filename, ...rest);
      if (--missing === 0) saved.resolve();
      return artifact;
    };
    return { save, deleteVersion: store.deleteVersion.bind(store) };
  }

  test.for<[string, string, RegExp]>([
    ["is refused by its name", "user:..", /filename "\.\." is refused/],
    ["turns the direction of its name", "y\u202etxt.exe", /"y\\u\{202e\}txt.exe" holds/],
    [
      "has a mark in its name",
      "y\u061c",
      /"y\\u\{61c\}" holds control, bidirectional or invisible characters$/,
    ],
    ["has a name with a space of no width", "y\u200b", /"y\\u\{200b\}" holds/],
    ["has a name with tags", "y\u{e0061}", /"y\\u\{e0061\}" holds/],
  ])("because it %s are none of them saved", { tags: "promise-O5" }, async ([, name, message]) => {
    const { collect, store } = await leave({ "a.txt": "fine", [name]: "x" });
    const save = vi.spyOn(store, "save");
    await expect(collect()).rejects.toThrow(refused(message));
    expect(save).not.toHaveBeenCalled();
  });

  test("may have names in every script, and emoji", async () => {
    const names = ["می\u200cخواهم.txt", "دج.csv", "👩\u200d🔬.md", "❤\ufe0f.md"].toSorted();
    const { collect } = await leave(Object.fromEntries(names.map((name) => [name, "x"])));
    expect((await collect()).map(({ filename }) => filename)).toEqual(names);
  });

  test("because the store fails are taken back, so that the next version has the next number", async () => {
    const { collect, store, logged } = await leave({ "a.txt": "1", "b.txt": "2", "z.txt": "3" });
    await collect();
    await expect(collect(noNotes, { store: failing(store, 2) })).rejects.toThrow(
      refused(/: output "z.txt" could not be saved: the store is full\. No output was kept\.$/),
    );
    for (const name of ["a.txt", "b.txt", "z.txt"]) {
      expect(await store.versions(scope, name, never)).toEqual([0]);
    }
    expect((await collect()).map(({ version }) => version)).toEqual([1, 1, 1]);
    expect(logged).toEqual([]);
  });

  test("because the call is given up are taken back too", async () => {
    const { collect, output, store } = await leave({ "a.txt": "1", "b.txt": "2" });
    const reason = new Error("shut down");
    const abort = new AbortController();
    const save: ArtifactStore["save"] = async (...args) => {
      const saved = await store.save(...args);
      abort.abort(reason);
      return saved;
    };
    const deleteVersion = store.deleteVersion.bind(store);
    // With more outputs than are saved at once some have not started.
    const names = ["c.txt", "d.txt", "e.txt"];
    for (const name of names) await writeFile(join(output, name), name);
    await expect(
      collect(noNotes, { store: { save, deleteVersion } }, abort.signal),
    ).rejects.toMatchObject({ cause: reason, remainingArtifacts: [] });
    for (const name of ["a.txt", "b.txt", ...names])
      expect(await store.versions(scope, name, never)).toEqual([]);
  });

  /** A store that saves `a.txt` in any case, and never ends with the others by itself. */
  function slow(store: ArtifactStore, onSaved = (): void => undefined): Collection["store"] {
    const save: ArtifactStore["save"] = async (of, filename, source, metadata, signal) => {
      if (filename === "a.txt")
        return store.save(of, filename, source, metadata, never).finally(onSaved);
      await systemClock.sleep(600_000, signal);
      expect.unreachable("nothing has ended the save");
    };
    return { save, deleteVersion: store.deleteVersion.bind(store) };
  }

  test("because the call is given up are named if they remain", async () => {
    const { collect, store, logged } = await leave({ "a.txt": "1", "b.txt": "2" });
    const [reason, abort] = [new Error("shut down"), new AbortController()];
    const deleteVersion = () => Promise.reject(new StoreError("unavailable", "it is away"));
    const stopping = slow(store, () => abort.abort(reason));
    await expect(
      collect(noNotes, { store: { ...stopping, deleteVersion } }, abort.signal),
    ).rejects.toMatchObject({
      cause: reason,
      remainingArtifacts: [{ filename: "a.txt", version: 0 }],
    });
    expect(logged[0]).toContain("outputs.not_deleted");
  });

  test("because the store is too slow end with their time, and are taken back", async () => {
    const { collect, store } = await leave({ "a.txt": "1", "b.txt": "2", "c.txt": "3" });
    await expect(collect(noNotes, { store: slow(store), limitMs: 50 })).rejects.toThrow(
      refused(
        /^Artifacts could not be saved: it took more than the 50 ms that were left\. No output was kept\.$/,
      ),
    );
    expect(await store.versions(scope, "a.txt", never)).toEqual([]);
    const deleteVersion = () => Promise.reject(new StoreError("unavailable", "it is away"));
    const stuck = { ...slow(store), deleteVersion };
    await expect(collect(noNotes, { store: stuck, limitMs: 50 })).rejects.toMatchObject({
      message: expect.stringMatching(
        /50 ms that were left\. These .*: "a.txt" version 0\.$/,
      ) as unknown,
      remainingArtifacts: [{ filename: "a.txt", version: 0 }],
    });
  });

  test("include one whose save fails after it has saved a version", async () => {
    const { collect, store } = await leave({ "a.txt": "1" });
    const failure = new StoreError("unavailable", "no line");
    const save: ArtifactStore["save"] = async (...args) => {
      throw new NotDeletedError(await store.save(...args), failure);
    };
    const burning = () => Promise.reject(new Error("the disk is on fire"));
    const message = 'Artifacts could not be saved: output "a.txt" could not be saved: no line.';
    const error = (await collect(noNotes, { store: { save, deleteVersion: burning } }).catch(
      (reason: unknown) => reason,
    )) as InvocationError;
    expect(error.message).toBe(`${message} These outputs could not be deleted: "a.txt" version 0.`);
    expect(error.remainingArtifacts).toEqual([{ filename: "a.txt", version: 0 }]);
    const deleteVersion = store.deleteVersion.bind(store);
    await expect(collect(noNotes, { store: { save, deleteVersion } })).rejects.toThrow(
      `${message} No output was kept.`,
    );
    expect(await store.versions(scope, "a.txt", never)).toEqual([0]);
  });

  test("and that cannot be taken back are in answer and log by name and version", async () => {
    const { collect, store, logged } = await leave({ "a.txt": "1", "b.txt": "2", "z.txt": "3" });
    const failure = new StoreError("unavailable", "the disk is on fire");
    const deleteVersion: ArtifactStore["deleteVersion"] = (of, filename, ...rest) =>
      filename === "a.txt" ? Promise.reject(failure) : store.deleteVersion(of, filename, ...rest);
    const error = (await collect(noNotes, {
      store: { ...failing(store, 2), deleteVersion },
    }).catch((reason: unknown) => reason)) as InvocationError;
    expect(error.message).toBe(
      'Artifacts could not be saved: output "z.txt" could not be saved: the store is full. These outputs could not be deleted: "a.txt" version 0.',
    );
    expect(error.remainingArtifacts).toEqual([{ filename: "a.txt", version: 0 }]);
    expect(await store.versions(scope, "b.txt", never)).toEqual([]);
    expect(logged.map((line) => JSON.parse(line) as object)).toMatchObject([
      {
        event: "outputs.not_deleted",
        count: 1,
        versions: ['"a.txt" version 0'],
        err: { message: "the disk is on fire" },
      },
    ]);
  });

  test("and that remain in numbers are listed in full for programs, and in part for readers", async () => {
    const names = Array.from({ length: 12 }, (_, index) => `${String(index).padStart(2, "0")}.txt`);
    const { collect, store } = await leave(
      Object.fromEntries([...names, "z.txt"].map((name) => [name, "x"])),
    );
    const deleteVersion = () => Promise.reject(new StoreError("unavailable", "it is away"));
    const full = failing(store, 12);
    const later = Promise.withResolvers<void>();
    const save: ArtifactStore["save"] = async (...given) => {
      const saved = await full.save(...given);
      // The first ends after a later one.
      if (given[1] === "01.txt") later.resolve();
      if (given[1] === "00.txt") await later.promise;
      return saved;
    };
    const error = (await collect(noNotes, {
      store: { save, deleteVersion },
    }).catch((reason: unknown) => reason)) as InvocationError;
    expect(error.message).toMatch(/"00.txt" version 0, .*"09.txt" version 0, 2 more\.$/);
    expect(error.remainingArtifacts).toHaveLength(12);
  });

  test("are saved no further, and taken back when the last has ended", async () => {
    const { collect, store } = await leave(
      Object.fromEntries(["a", "b", "c", "d", "e"].map((name) => [name, name])),
    );
    const bad = new StoreError("unavailable", "the store is full");
    const [failed, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const signals: AbortSignal[] = [];
    const save: ArtifactStore["save"] = async (of, filename, source, metadata, signal) => {
      if (filename === "a") {
        failed.resolve();
        throw bad;
      }
      if (filename === "e") expect.unreachable("it must not start");
      signals.push(signal);
      await late.promise;
      return store.save(of, filename, source, metadata, signal);
    };
    const deleteVersion = store.deleteVersion.bind(store);
    const collecting = collect(noNotes, { store: { save, deleteVersion } });
    await failed.promise;
    // The failure of the first has arrived everywhere.
    await new Promise(setImmediate);
    late.resolve();
    await expect(collecting).rejects.toThrow(refused(/"a" could not be saved.*No output was kept/));
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false, false]);
    for (const name of ["b", "c", "d"])
      expect(await store.versions(scope, name, never)).toEqual([]);
  });

  test("are waited for no longer than the bound while they are taken back", async () => {
    const { collect, store, logged } = await leave({ "a.txt": "1", "z.txt": "3" });
    const waits: number[] = [];
    const clock = { sleep: (ms: number) => (waits.push(ms), Promise.resolve()) };
    const deleteVersion = () => new Promise<boolean>(() => undefined);
    await expect(
      collect(noNotes, { store: { ...failing(store, 1), deleteVersion }, clock }),
    ).rejects.toThrow(refused(/the store is full\. These outputs .* "a.txt" version 0\.$/));
    expect(waits).toEqual([3_000, 2_000]);
    expect(logged[0]).toContain("outputs.not_deleted");
  });
});
