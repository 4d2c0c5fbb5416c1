/**
 * The store of a call under a required audit log whose disk fills up: nothing passes unrecorded.
 */
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createFilesystemStore } from "../../../../worker/artifacts/filesystem/store.ts";
import { NotDeletedError, StoreError } from "../../../../worker/artifacts/store.ts";
import { type CallStore, auditedStore } from "../../../../worker/invocation/audit/audited-store.ts";
import { CallAudit } from "../../../../worker/invocation/audit/call-audit.ts";
import { type ArtifactOrigin, stageArtifacts } from "../../../../worker/invocation/steps/stage.ts";
import { Transfers } from "../../../../worker/invocation/steps/transfers.ts";
import { InvocationError } from "../../../../worker/protocol/errors.ts";
import type { Invocation } from "../../../../worker/protocol/invocation.ts";
import { systemClock } from "../../../../worker/support/clock.ts";
import { openAuditLog } from "../../../../worker/telemetry/audit/open.ts";
import { patience } from "../../../support/patience.ts";
import { ownFileSystem } from "../../../support/sandboxes/own-file-system.ts";
import { newWorkDir } from "../../../support/sandboxes/work-dir.ts";
import { auditLinesOf } from "../../../support/workers/audit-lines.ts";
import { keptLog } from "../../../support/workers/kept-log.ts";
import {
  csv,
  never,
  readText,
  scope,
  sourceOf,
  temporaryDirectory,
} from "../../artifacts/fixtures.ts";

/** A store of one call, and the disk of its audit log. */
async function newCall(wrap: (store: CallStore) => CallStore = (store) => store) {
  const store = createFilesystemStore({ basePath: await temporaryDirectory() });
  onTestFinished(() => store[Symbol.asyncDispose]());
  const disk = await ownFileSystem("8k");
  const [path, other] = [join(disk, "audit.log"), join(disk, "other")];
  const parts = { workerId: "w", clock: systemClock, log: keptLog() };
  const target = { kind: "file", path } as const;
  const audit = await openAuditLog({ target, isRequired: true }, parts);
  onTestFinished(() => audit[Symbol.asyncDispose]());
  const delivery = { topic: "ns/a2a/v1/sam_remote_tool/invoke/echo" };
  const call = CallAudit.of({ audit, namespace: "ns", clock: systemClock }, delivery, "key=");
  return {
    store,
    audited: auditedStore(wrap(store), call),
    fill: () => writeFile(other, "x".repeat(8192)).catch(() => undefined),
    free: async () => {
      await rm(other);
      await vi.waitFor(() => expect(audit.notReadyReasons).toEqual([]), patience);
    },
    lines: async () =>
      auditLinesOf(await readFile(path, "utf8")).map(({ event, artifact, version, outcome }) =>
        [event, artifact, version, outcome].join(" "),
      ),
  };
}

describe("while the audit log cannot be written", () => {
  test("an artifact does not reach a tool", { tags: "promise-R9" }, async () => {
    const { store, audited, fill, free, lines } = await newCall();
    await store.save(scope, "in.csv", sourceOf("content"), csv, never);
    await fill();
    const opening = audited.open(scope, { filename: "in.csv", version: undefined }, never);
    await expect(opening).rejects.toThrow(
      new StoreError("unavailable", "The worker's audit log cannot be written."),
    );
    await free();
    const opened = await audited.open(scope, { filename: "in.csv", version: 0 }, never);
    expect(await text(opened.body)).toBe("content");
    // The refused read has its line once there is room.
    expect(await lines()).toEqual([
      "artifact.read in.csv 0 ok",
      "artifact.read in.csv 0 ARTIFACT_ERROR",
      "artifact.read in.csv 0 ok",
    ]);
  });

  test("an output is not saved, or is deleted again", { tags: "promise-R9" }, async () => {
    const { store, audited, fill, free, lines } = await newCall();
    await fill();
    const saving = audited.save(scope, "out.csv", sourceOf("content"), csv, never);
    await expect(saving).rejects.toThrow(StoreError);
    expect(await store.versions(scope, "out.csv", never)).toEqual([]);
    await free();
    await audited.save(scope, "out.csv", sourceOf("again"), csv, never);
    expect(await readText(store, "out.csv", 0)).toBe("again");
    expect(await lines()).toEqual([
      "artifact.write out.csv 0 ok",
      "artifact.delete out.csv 0 ok",
      "artifact.write out.csv 0 ok",
    ]);
  });
});

test("recorded artifacts go from file to file, without a stream", async () => {
  const { store, audited } = await newCall();
  await store.save(scope, "in.csv", sourceOf("content"), csv, never);
  const { body, file } = await audited.open(scope, { filename: "in.csv", version: 0 }, never);
  onTestFinished(() => void body.destroy());
  const open = () => expect.unreachable("the content is streamed");
  await audited.save(scope, "out.csv", { sizeBytes: 7, open, ...(file && { file }) }, csv, never);
  expect(await readText(store, "out.csv", 0)).toBe("content");
});

test("an output that cannot be deleted again is known to its call", async () => {
  const deleteVersion = () => Promise.reject(new Error("the disk is on fire"));
  const { audited, fill } = await newCall((store) => ({
    save: store.save.bind(store),
    open: store.open.bind(store),
    deleteVersion,
  }));
  await fill();
  const saving = audited.save(scope, "out.csv", sourceOf("content"), csv, never);
  const error = await saving.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(NotDeletedError);
  const { saved, cause } = error as NotDeletedError;
  expect(saved.version).toBe(0);
  expect(cause).toBeInstanceOf(StoreError);
});

describe("an input that does not reach its tool", () => {
  /** Stages two artifacts. */
  async function stage(changes: Partial<ArtifactOrigin>, prepare?: (input: string) => unknown) {
    const { store, audited, lines } = await newCall();
    for (const name of ["a.csv", "b.csv"])
      await store.save(scope, name, sourceOf("content"), csv, never);
    const workDir = await newWorkDir();
    onTestFinished(() => workDir[Symbol.asyncDispose]());
    await prepare?.(join(workDir.path, "input"));
    const reference = (filename: string) => [filename, { filename, version: 0 }] as const;
    const invocation = {
      preloaded: new Map(),
      references: new Map(["a.csv", "b.csv"].map(reference)),
    } as Partial<Invocation> as Invocation;
    const limits = { maxBytes: 100, callMaxBytes: 100 };
    const transfers = new Transfers();
    const origin = { store: audited, scope, limits, diskBytes: 1_000, transfers, ...changes };
    const staging = stageArtifacts(invocation, workDir, origin, never);
    await expect(staging).rejects.toThrow(InvocationError);
    return lines;
  }

  test("since it cannot be copied has a line that says so", async () => {
    const lines = await stage({}, (input) => writeFile(join(input, "a.csv"), "in its place"));
    await vi.waitFor(async () => {
      expect((await lines()).filter((line) => line.includes("a.csv"))).toEqual([
        "artifact.read a.csv 0 ok",
        "artifact.read a.csv 0 ARTIFACT_ERROR",
      ]);
    }, patience);
  });

  test("since it is too large has one, too", async () => {
    const lines = await stage({ limits: { maxBytes: 6, callMaxBytes: 100 } });
    await vi.waitFor(async () => {
      const failures = (await lines()).filter((line) => line.endsWith("ARTIFACT_ERROR"));
      expect(failures).not.toEqual([]);
    }, patience);
  });
});

test("an access that ends since another one of its call failed is cancelled", async () => {
  const { audited, lines } = await newCall((store) => ({
    ...store,
    open: async (of, reference, signal) => {
      if (reference.filename === "bad.csv") throw new StoreError("not-found", "gone");
      await systemClock.sleep(600_000, signal);
      return store.open(of, reference, signal);
    },
  }));
  const reading = new Transfers().map(["good.csv", "bad.csv"], 2, never, (filename, ending) =>
    audited.open(scope, { filename, version: 0 }, ending),
  );
  await expect(reading).rejects.toThrow("gone");
  await vi.waitFor(async () => {
    expect((await lines()).toSorted()).toEqual([
      "artifact.read bad.csv 0 ARTIFACT_ERROR",
      "artifact.read good.csv 0 cancelled",
    ]);
  }, patience);
});

describe("an access has another line", () => {
  /** Stages content for a call. */
  async function stage(body: Readable, signal: AbortSignal) {
    const facts = { version: 4, sizeBytes: 9, metadata: csv, etag: "1" };
    const open = () => Promise.resolve({ ...facts, body });
    const { audited, lines } = await newCall((store) => ({ ...store, open }));
    const workDir = await newWorkDir();
    onTestFinished(() => workDir[Symbol.asyncDispose]());
    const reference = { filename: "in.csv", version: undefined };
    const invocation = {
      preloaded: new Map(),
      references: new Map([["data", reference]]),
    } as Partial<Invocation> as Invocation;
    const limits = { maxBytes: 100, callMaxBytes: 100 };
    const transfers = new Transfers();
    const origin = { store: audited, scope, limits, diskBytes: 1_000, transfers };
    return { staging: stageArtifacts(invocation, workDir, origin, signal), lines };
  }

  test.for([
    ["breaks off, also while the first is written", () => new PassThrough()],
    ["is shorter than the store has said", () => Readable.from([Buffer.from("short")])],
  ] as const)("when its content %s", async ([, contentOf]) => {
    const body = contentOf();
    const { staging, lines } = await stage(body, never);
    if (body instanceof PassThrough) body.destroy(new Error("cut"));
    await expect(staging).rejects.toThrow(InvocationError);
    await vi.waitFor(async () => {
      expect(await lines()).toEqual([
        "artifact.read in.csv 4 ok",
        "artifact.read in.csv 4 ARTIFACT_ERROR",
      ]);
    }, patience);
  });

  test("that says so when the call is stopped", async () => {
    const stopping = new AbortController();
    const { staging, lines } = await stage(new PassThrough(), stopping.signal);
    const ended = expect(staging).rejects.toThrow();
    await vi.waitFor(async () => expect(await lines()).toHaveLength(1), patience);
    stopping.abort(new Error("stopped"));
    await ended;
    await vi.waitFor(async () => {
      expect(await lines()).toEqual([
        "artifact.read in.csv 4 ok",
        "artifact.read in.csv 4 cancelled",
      ]);
    }, patience);
  });
});
