/**
 * A call's arguments and input artifacts on their way into its work directory.
 */
import { mkdtemp, readFile, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { Readable } from "node:stream";
import { anyCharacter, fc, test as propertyTest } from "../../support/properties/property.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createFilesystemStore } from "../../../worker/artifacts/filesystem/store.ts";
import { createMemoryStore } from "../../../worker/artifacts/memory/store.ts";
import { type ArtifactStore, StoreError } from "../../../worker/artifacts/store.ts";
import {
  type ArtifactOrigin,
  maxLoading,
  stageArtifacts,
} from "../../../worker/invocation/steps/stage.ts";
import { Transfers } from "../../../worker/invocation/steps/transfers.ts";
import { InvocationError } from "../../../worker/protocol/errors.ts";
import type {
  ArtifactReference,
  Invocation,
  PreloadedArtifact,
} from "../../../worker/protocol/invocation.ts";
import type { WorkDir } from "../../../worker/sandbox/work/work-dir.ts";
import { abortable } from "../../../worker/support/timeout.ts";
import { ownFileSystem } from "../../support/sandboxes/own-file-system.ts";
import { newWorkDir } from "../../support/sandboxes/work-dir.ts";

const never = new AbortController().signal;
const scope = { root: "ns", userId: "user-42", sessionId: "web-1" };

function invocation(artifacts: {
  references?: Record<string, ArtifactReference>;
  preloaded?: Record<string, PreloadedArtifact>;
}): Invocation {
  return {
    id: "id",
    taskId: "task",
    toolName: "tool",
    args: {},
    toolConfig: {},
    caller: { appName: "agent", userId: "user-42", sessionId: "web-1" },
    references: new Map(Object.entries(artifacts.references ?? {})),
    preloaded: new Map(Object.entries(artifacts.preloaded ?? {})),
    timeoutSeconds: undefined,
    requestedProfile: undefined,
    replyTo: "reply",
    statusTo: undefined,
    sentAtMs: 0,
  };
}

/** Bounds that no test meets unless it changes them. */
function originOf(
  store: ArtifactOrigin["store"],
  changes: Partial<ArtifactOrigin> = {},
): ArtifactOrigin {
  const limits = { maxBytes: Infinity, callMaxBytes: Infinity };
  return { store, scope, limits, diskBytes: Infinity, transfers: new Transfers(), ...changes };
}

function preloaded(filename: string, content = `content of ${filename}`): PreloadedArtifact {
  return { filename, version: 0, mimeType: "text/plain", bytes: Buffer.from(content) };
}

async function save(store: ArtifactStore, filename: string, content: string): Promise<void> {
  const bytes = Buffer.from(content);
  const source = { sizeBytes: bytes.byteLength, open: () => Readable.from([bytes]) };
  await store.save(scope, filename, source, { mimeType: "text/csv" }, never);
}

/** Content of the staged files by parameter, read where the tool will read them. */
async function contents(workDir: WorkDir, staged: Awaited<ReturnType<typeof stageArtifacts>>) {
  const entries = [...staged].map(async ([parameter, { path }]) => {
    expect(path).toBe(`/sandbox/work/input/${basename(path)}`);
    return [parameter, await readFile(join(workDir.path, "input", basename(path)), "utf8")];
  });
  return Object.fromEntries(await Promise.all(entries)) as Record<string, string>;
}

async function refusal(staging: Promise<unknown>): Promise<InvocationError> {
  const error: unknown = await staging.then(
    () => new Error("nothing was refused"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(InvocationError);
  expect((error as InvocationError).code).toBe("ARTIFACT_ERROR");
  return error as InvocationError;
}

test.each(["no such file", "of/no file", ""])(
  "an optional artifact %j that the store does not have is left out",
  async (filename) => {
    await using workDir = await newWorkDir();
    const store = createMemoryStore();
    await save(store, "a.csv", "a");
    const references = {
      a: { filename: "a.csv", version: undefined, isOptional: true },
      b: { filename, version: undefined, isOptional: true },
    };
    const staged = await stageArtifacts(
      invocation({ references }),
      workDir,
      originOf(store),
      never,
    );
    expect([...staged.keys()]).toEqual(["a"]);
  },
);

describe("input artifacts", () => {
  test("lie under their own names, whole, with what the store knows of them", async () => {
    await using store = createMemoryStore();
    await using workDir = await newWorkDir();
    await save(store, "data.csv", "old");
    await save(store, "data.csv", "new");
    await save(store, "user:profile.json", "{}");
    const call = invocation({
      references: {
        latest: { filename: "data.csv", version: undefined },
        profile: { filename: "user:profile.json", version: 0 },
      },
      preloaded: { "files[0]": { ...preloaded("n.bin", "\0\xff"), mimeType: "x/y", version: 7 } },
    });
    const staged = await stageArtifacts(call, workDir, originOf(store), never);
    expect(Object.fromEntries(staged)).toEqual({
      "files[0]": {
        path: "/sandbox/work/input/n.bin",
        filename: "n.bin",
        mimeType: "x/y",
        version: 7,
      },
      latest: {
        path: "/sandbox/work/input/data.csv",
        filename: "data.csv",
        mimeType: "text/csv",
        version: 1,
      },
      profile: {
        path: "/sandbox/work/input/user:profile.json",
        filename: "user:profile.json",
        mimeType: "text/csv",
        version: 0,
      },
    });
    expect(await contents(workDir, staged)).toEqual({
      "files[0]": "\0\xff",
      latest: "new",
      profile: "{}",
    });
  });

  test("that came with the request win over references of the same parameter", async () => {
    await using store = createMemoryStore();
    await using workDir = await newWorkDir();
    const call = invocation({
      references: { data: { filename: "missing.csv", version: 3 } },
      preloaded: { data: preloaded("data.csv", "sent along") },
    });
    const staged = await stageArtifacts(call, workDir, originOf(store), never);
    expect(await contents(workDir, staged)).toEqual({ data: "sent along" });
  });

  test("of one name stay apart, also when another has the name that one of them would get", async () => {
    await using store = createMemoryStore();
    await using workDir = await newWorkDir();
    const names = ["a", "2-a", "a", "a", "3-a", "4-a", "a"];
    const call = invocation({
      preloaded: Object.fromEntries(
        names.map((name, index) => [`p${index}`, preloaded(name, `${index}`)]),
      ),
    });
    const staged = await stageArtifacts(call, workDir, originOf(store), never);
    expect(await contents(workDir, staged)).toEqual(
      Object.fromEntries(names.map((_, index) => [`p${index}`, `${index}`])),
    );
    expect([...staged.values()].map(({ filename }) => filename)).toEqual(names);
  });

  test("of one call load a few at a time, under names in order of their parameters", async () => {
    await using store = createMemoryStore();
    await using workDir = await newWorkDir();
    const parameters = Array.from({ length: 100 }, (_, index) => `p${index}`);
    for (const parameter of parameters) await save(store, "data.csv", parameter);
    let [running, peak] = [0, 0];
    const counting: ArtifactOrigin["store"] = {
      open: async (of, reference, signal) => {
        peak = Math.max(peak, ++running);
        const opened = await store.open(of, reference, signal);
        opened.body.once("close", () => running--);
        return opened;
      },
    };
    const references = Object.fromEntries(
      parameters.map((parameter, version) => [parameter, { filename: "data.csv", version }]),
    );
    const staged = await stageArtifacts(
      invocation({ references }),
      workDir,
      originOf(counting),
      never,
    );
    expect(peak).toBe(maxLoading);
    expect([...staged].map(([parameter, { path }]) => [parameter, basename(path)])).toEqual(
      parameters.map((parameter, index) => [
        parameter,
        index === 0 ? "data.csv" : `${index}-data.csv`,
      ]),
    );
    expect(await contents(workDir, staged)).toEqual(
      Object.fromEntries(parameters.map((parameter) => [parameter, parameter])),
    );
  });

  test("are readable by nobody but their owner", async () => {
    await using store = createMemoryStore();
    await using workDir = await newWorkDir();
    await stageArtifacts(
      invocation({ preloaded: { a: preloaded("a") } }),
      workDir,
      originOf(store),
      never,
    );
    expect((await stat(join(workDir.path, "input/a"))).mode & 0o777).toBe(0o600);
  });

  test.each([
    ["", ""],
    [".", "."],
    ["..", ".."],
    ["user:", ""],
    ["user:..", ".."],
    ["../secret", "../secret"],
    ["a/b", "a/b"],
    ["a\\b", "a\\b"],
    ["a\nb", "a\nb"],
    ["a\0b", "a\0b"],
    ["half\ud800", "half"],
  ])("whose name cannot be a file name are refused: %j", async (filename) => {
    await using store = createMemoryStore();
    await using workDir = await newWorkDir();
    const call = invocation({ preloaded: { data: preloaded(filename) } });
    const error = await refusal(stageArtifacts(call, workDir, originOf(store), never));
    expect(error.message).toBe(
      `Artifact "${filename}" for parameter "data" could not be loaded: its name cannot be a file name`,
    );
  });

  test("may have long names, but not longer than a file system takes", async () => {
    await using store = createMemoryStore();
    await using workDir = await newWorkDir();
    const stage = (filename: string) =>
      stageArtifacts(
        invocation({ preloaded: { a: preloaded(filename), b: preloaded(filename) } }),
        workDir,
        originOf(store),
        never,
      );
    const longest = `${"é".repeat(125)}.json`;
    const staged = await stage(longest);
    expect([...staged.values()].map(({ path }) => path.split("/").at(-1))).toEqual([
      longest,
      `1-${"é".repeat(122)}.json`,
    ]);
    expect((await refusal(stage(`é${longest}`))).message).toContain("longer than 255 bytes");
  });

  test("of the user's lose the prefix where the name has all the bytes that a file's name may have", async () => {
    await using store = createMemoryStore();
    await using workDir = await newWorkDir();
    const call = invocation({ preloaded: { a: preloaded(`user:${"n".repeat(255)}`) } });
    const staged = await stageArtifacts(call, workDir, originOf(store), never);
    expect(basename(staged.get("a")?.path ?? "")).toBe("n".repeat(255));
  });

  propertyTest.prop([fc.array(fc.string({ unit: anyCharacter, maxLength: 6 }), { maxLength: 8 })], {
    numRuns: 50,
  })("of any names at all are staged apart or refused", async (names) => {
    await using store = createMemoryStore();
    await using workDir = await newWorkDir();
    const call = invocation({
      preloaded: Object.fromEntries(
        names.map((name, index) => [`p${index}`, preloaded(name, `${index}`)]),
      ),
    });
    try {
      const staged = await stageArtifacts(call, workDir, originOf(store), never);
      expect(await contents(workDir, staged)).toEqual(
        Object.fromEntries(names.map((_, index) => [`p${index}`, `${index}`])),
      );
    } catch (error) {
      expect(error).toMatchObject({ name: "InvocationError", code: "ARTIFACT_ERROR" });
    }
    const left = await readdir(workDir.path);
    expect(left.toSorted()).toEqual(["input", "output", "status.pipe"]);
  });
});

describe("an artifact that cannot be loaded", () => {
  test("is named with its parameter and what the store says", async () => {
    await using store = createMemoryStore();
    await using workDir = await newWorkDir();
    await save(store, "data.csv", "x");
    const call = invocation({ references: { table: { filename: "data.csv", version: 3 } } });
    const error = await refusal(stageArtifacts(call, workDir, originOf(store), never));
    expect(error.message).toMatch(
      /^Artifact "data\.csv" for parameter "table" could not be loaded: .*version 3.*not found/,
    );
  });

  test("because its content breaks off is named, and keeps its cause for the log", async () => {
    const cause = new Error("EIO /srv/artifacts/data.csv/0");
    async function* breakingOff(): AsyncGenerator<Buffer> {
      yield Buffer.from("first ");
      throw cause;
    }
    const opened = {
      version: 0,
      sizeBytes: 100,
      etag: "1",
      metadata: { mimeType: "text/csv" },
      body: Readable.from(breakingOff()),
    };
    await using workDir = await newWorkDir();
    const call = invocation({ references: { table: { filename: "data.csv", version: 0 } } });
    const store = { open: () => Promise.resolve(opened) };
    const error = await refusal(stageArtifacts(call, workDir, originOf(store), never));
    expect(error.message).toBe(
      'Artifact "data.csv" for parameter "table" could not be loaded: its content could not be read',
    );
    expect(error.cause).toBe(cause);
  });

  test("because it would fill the disk is refused before a byte is read, and its stream is closed", async () => {
    const body = new Readable({ read: () => expect.unreachable("nothing may be read") });
    const facts = { version: 0, sizeBytes: 100, etag: "1", metadata: { mimeType: "x" } };
    const opened = { ...facts, body };
    await using workDir = await newWorkDir();
    const call = invocation({ references: { table: { filename: "data.csv", version: 0 } } });
    const origin = originOf({ open: () => Promise.resolve(opened) }, { diskBytes: 99 });
    await expect(stageArtifacts(call, workDir, origin, never)).rejects.toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      message:
        'Insufficient disk space for artifact "data.csv": it has 100 bytes, and with it the inputs have 100 bytes together, 99 are free',
    });
    expect(body.destroyed).toBe(true);
  });

  test("because the disk fills up meanwhile is refused as what may run later", async () => {
    await using store = createMemoryStore();
    await save(store, "data.csv", "x".repeat(1024 ** 2));
    await using workDir = await newWorkDir(await ownFileSystem("512k"));
    const call = invocation({ references: { table: { filename: "data.csv", version: 0 } } });
    const staging = stageArtifacts(call, workDir, originOf(store), never);
    await expect(staging).rejects.toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      message: 'Insufficient disk space for artifact "data.csv": the disk is full',
    });
  });

  test("because a quota is used up is refused likewise", async () => {
    await using store = createMemoryStore();
    const cause = Object.assign(new Error("EDQUOT /srv/work"), { code: "EDQUOT" });
    const workDir = { writeInput: () => Promise.reject(cause) } as Partial<WorkDir> as WorkDir;
    const call = invocation({ preloaded: { note: preloaded("n.txt") } });
    const staging = stageArtifacts(call, workDir, originOf(store), never);
    await expect(staging).rejects.toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      message: 'Insufficient disk space for artifact "n.txt": the disk is full',
      cause,
    });
  });

  test("because of the facts that its store knows before is refused without its content", async () => {
    const open: ArtifactOrigin["store"]["open"] = async (_scope, _reference, _signal, accept) => {
      await accept?.({ version: 0, sizeBytes: 100, etag: "1", metadata: { mimeType: "x" } });
      return expect.unreachable("the content moves");
    };
    await using workDir = await newWorkDir();
    const call = invocation({ references: { table: { filename: "data.csv", version: 0 } } });
    const limits = { maxBytes: Infinity, callMaxBytes: 99 };
    const origin = originOf({ open }, { limits });
    const error = await refusal(stageArtifacts(call, workDir, origin, never));
    expect(error.message).toContain("at most 99 are allowed");
  });

  test("counts once, with the size of the version that was opened in the end", async () => {
    const facts = { version: 0, etag: "1", metadata: { mimeType: "x" } };
    const open: ArtifactOrigin["store"]["open"] = async (_, { filename }, _signal, accept) => {
      await accept?.({ ...facts, sizeBytes: 40 });
      const body = Readable.from([Buffer.alloc(filename === "grown" ? 60 : 40)]);
      return { ...facts, sizeBytes: filename === "grown" ? 60 : 40, body };
    };
    const references = {
      a: { filename: "same", version: 0 },
      b: { filename: "grown", version: undefined },
    };
    const stage = async (diskBytes: number) => {
      await using workDir = await newWorkDir();
      const origin = originOf({ open }, { diskBytes });
      return await stageArtifacts(invocation({ references }), workDir, origin, never);
    };
    await stage(100);
    await expect(stage(99)).rejects.toMatchObject({ code: "RESOURCE_EXHAUSTED" });
  });

  test("because all inputs together would fill the disk is refused, also while others load", async () => {
    const bodies: Readable[] = [];
    const open = () => {
      const body = new Readable({ read: () => undefined });
      bodies.push(body);
      const facts = { version: 0, sizeBytes: 40, etag: "1", metadata: { mimeType: "x" } };
      return Promise.resolve({ ...facts, body });
    };
    await using workDir = await newWorkDir();
    const names = ["a", "b", "c"];
    const references = Object.fromEntries(
      names.map((filename) => [filename, { filename, version: 0 }]),
    );
    const origin = originOf({ open }, { diskBytes: 119 });
    await expect(
      stageArtifacts(invocation({ references }), workDir, origin, never),
    ).rejects.toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      message: expect.stringContaining("have 120 bytes together, 119 are free") as unknown,
    });
    expect(bodies.map(({ destroyed }) => destroyed)).toEqual([true, true, true]);
  });

  test("because it is larger than allowed is refused with both sizes before a byte is read", async () => {
    const unread = () => new Readable({ read: () => expect.unreachable("nothing may be read") });
    const bodies: Readable[] = [];
    const open = () => {
      const body = unread();
      bodies.push(body);
      const facts = { version: 0, sizeBytes: 100, etag: "1", metadata: { mimeType: "x" } };
      return Promise.resolve({ ...facts, body });
    };
    await using workDir = await newWorkDir();
    const call = invocation({ references: { table: { filename: "data.csv", version: 0 } } });
    const stage = (limits: ArtifactOrigin["limits"], given = call) =>
      refusal(stageArtifacts(given, workDir, originOf({ open }, { limits }), never));
    expect((await stage({ maxBytes: 99, callMaxBytes: Infinity })).message).toBe(
      'Artifact "data.csv" for parameter "table" could not be loaded: it has 100 bytes, at most 99 are allowed',
    );
    const together = invocation({
      preloaded: { note: preloaded("n.txt", "12") },
      references: { table: { filename: "data.csv", version: 0 } },
    });
    expect((await stage({ maxBytes: 100, callMaxBytes: 101 }, together)).message).toBe(
      'Artifact "data.csv" for parameter "table" could not be loaded: with it the inputs have 102 bytes together, at most 101 are allowed',
    );
    expect(bodies.map(({ destroyed }) => destroyed)).toEqual([true, true]);
    const sent = invocation({ preloaded: { note: preloaded("n.txt", "12345") } });
    expect((await stage({ maxBytes: 4, callMaxBytes: Infinity }, sent)).message).toContain(
      "it has 5 bytes, at most 4 are allowed",
    );
  });

  test.for([
    [4, "more than the announced 4 bytes arrived"],
    [6, "5 of the announced 6 bytes arrived"],
  ] as const)("because it has not the announced %i bytes is refused", async ([sizeBytes, why]) => {
    const body = Readable.from([Buffer.from("123"), Buffer.from("45")]);
    const facts = { version: 0, sizeBytes, etag: "1", metadata: { mimeType: "x" } };
    await using workDir = await newWorkDir();
    const call = invocation({ references: { table: { filename: "data.csv", version: 0 } } });
    const origin = originOf({ open: () => Promise.resolve({ ...facts, body }) });
    const error = await refusal(stageArtifacts(call, workDir, origin, never));
    expect(error.message).toContain(why);
    expect(body.destroyed).toBe(true);
    const written = await readFile(join(workDir.path, "input/data.csv"), "utf8");
    expect(written.length).toBeLessThanOrEqual(sizeBytes);
  });

  test("ends the loading of the others, whose streams are closed", async () => {
    const loading = new Readable({ read: () => undefined });
    const failing = Promise.withResolvers<never>();
    const facts = { version: 0, sizeBytes: 9, etag: "1", metadata: { mimeType: "x" } };
    const open: ArtifactOrigin["store"]["open"] = (_scope, { filename }) => {
      if (filename === "missing.csv") return failing.promise;
      setImmediate(() => failing.reject(new StoreError("not-found", "It was not found.")));
      return Promise.resolve({ ...facts, body: loading });
    };
    await using workDir = await newWorkDir();
    const references = {
      table: { filename: "data.csv", version: 0 },
      other: { filename: "missing.csv", version: 0 },
    };
    const error = await refusal(
      stageArtifacts(invocation({ references }), workDir, originOf({ open }), never),
    );
    expect(error.message).toContain('"missing.csv" for parameter "other"');
    expect(loading.destroyed).toBe(true);
  });

  describe("beside others that cannot", () => {
    const facts = { version: 0, etag: "1", metadata: { mimeType: "x" } };
    const afterOthers = () => new Promise(setImmediate);

    async function refusedOf(
      references: readonly ArtifactReference[],
      open: ArtifactOrigin["store"]["open"],
      limits: ArtifactOrigin["limits"],
    ): Promise<string> {
      await using workDir = await newWorkDir();
      const entries = references.map((reference, index) => [`p${index}`, reference] as const);
      const call = invocation({ references: Object.fromEntries(entries) });
      const { message } = await refusal(
        stageArtifacts(call, workDir, originOf({ open }, { limits }), never),
      );
      return message;
    }

    const unlimited = { maxBytes: Infinity, callMaxBytes: Infinity };
    const two = [
      { filename: "slow", version: 0 },
      { filename: "fast", version: 0 },
    ];

    test("is the one that is named if it is the first of the request, not the first to fail", async () => {
      const open: ArtifactOrigin["store"]["open"] = async (_, { filename }) => {
        if (filename === "slow") await afterOthers();
        throw new StoreError("not-found", "It was not found.");
      };
      expect(await refusedOf(two, open, unlimited)).toContain('"slow" for parameter "p0"');
    });

    test("is named after an optional one that the store does not have", async () => {
      const open: ArtifactOrigin["store"]["open"] = async (_, { filename }) => {
        if (filename === "slow") await afterOthers();
        throw new StoreError("not-found", "It was not found.");
      };
      const references = [{ ...two[0]!, isOptional: true }, two[1]!];
      expect(await refusedOf(references, open, unlimited)).toContain('"fast" for parameter "p1"');
    });

    test.for([["when it is open"], ["before its content moves"]] as const)(
      "takes its bytes in the order of the request: %s",
      async ([when]) => {
        const bodies: Readable[] = [];
        const open: ArtifactOrigin["store"]["open"] = async (_, { filename }, _signal, accept) => {
          if (filename === "slow") await afterOthers();
          if (when !== "when it is open") await accept?.({ ...facts, sizeBytes: 60 });
          const body = new Readable({ read: () => undefined });
          bodies.push(body);
          return { ...facts, sizeBytes: 60, body };
        };
        expect(await refusedOf(two, open, { maxBytes: 60, callMaxBytes: 100 })).toBe(
          'Artifact "fast" for parameter "p1" could not be loaded: with it the inputs have 120 bytes together, at most 100 are allowed',
        );
        expect(bodies.map(({ destroyed }) => destroyed)).not.toContain(false);
      },
    );

    test("does not wait for the content of earlier ones that moves before they open", async () => {
      const open: ArtifactOrigin["store"]["open"] = async (_, { filename }, signal, accept) => {
        if (filename === "fast") throw new StoreError("not-found", "It was not found.");
        await accept?.({ ...facts, sizeBytes: 60 });
        return abortable(new Promise<never>(() => undefined), signal);
      };
      expect(await refusedOf(two, open, unlimited)).toContain('"fast" for parameter "p1"');
    });

    test("leaves no file of many others open", async () => {
      const base = await mkdtemp(join(tmpdir(), "str-stage-"));
      onTestFinished(() => rm(base, { recursive: true }));
      await using store = createFilesystemStore({ basePath: base });
      const names = Array.from({ length: 3 * maxLoading }, (_, index) => `${index}.csv`);
      for (const name of names) await save(store, name, name);
      const bodies: Readable[] = [];
      const open: ArtifactOrigin["store"]["open"] = async (...args) => {
        const opened = await store.open(...args);
        bodies.push(opened.body);
        return opened;
      };
      const references = names.map((filename) => ({ filename, version: 0 }));
      references.splice(maxLoading, 0, { filename: "missing", version: 0 });
      const message = await refusedOf(references, open, unlimited);
      expect(message).toContain(`"missing" for parameter "p${maxLoading}"`);
      expect(bodies.length).toBeGreaterThanOrEqual(maxLoading);
      expect(bodies.map(({ destroyed }) => destroyed)).not.toContain(false);
    });

    test("ends with the call while an earlier one is still being opened", async () => {
      const giveUp = new AbortController();
      const body = new Readable({ read: () => undefined });
      const open: ArtifactOrigin["store"]["open"] = async (_, { filename }, signal) => {
        if (filename === "slow") return abortable(new Promise<never>(() => undefined), signal);
        setImmediate(() => giveUp.abort(new Error("shut down")));
        return { ...facts, sizeBytes: 1, body };
      };
      await using workDir = await newWorkDir();
      const call = invocation({ references: { a: two[0]!, b: two[1]! } });
      const staging = stageArtifacts(call, workDir, originOf({ open }), giveUp.signal);
      await expect(staging).rejects.toThrow("shut down");
      expect(body.destroyed).toBe(true);
    });
  });

  test("because the call is given up fails with the signal's reason, and its stream is closed", async () => {
    const giveUp = new AbortController();
    const reason = new Error("shut down");
    const body = new Readable({ read: () => undefined });
    const facts = { version: 0, sizeBytes: 100, etag: "1", metadata: { mimeType: "x" } };
    const opened = { ...facts, body };
    await using workDir = await newWorkDir();
    const call = invocation({ references: { table: { filename: "data.csv", version: 0 } } });
    const staging = stageArtifacts(
      call,
      workDir,
      originOf({ open: () => Promise.resolve(opened) }),
      giveUp.signal,
    );
    setImmediate(() => giveUp.abort(reason));
    await expect(staging).rejects.toBe(reason);
    expect(body.destroyed).toBe(true);
  });
});
