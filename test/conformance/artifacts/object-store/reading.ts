/**
 * What stores of objects have to do when a read is cut: it goes on from there.
 */
import { Writable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { describe, expect, test, vi } from "vitest";
import type { ArtifactScope, ArtifactStore } from "../../../../worker/artifacts/store.ts";
import { type FailingObjectStore, always, failing } from "./failures.ts";
import { contentOf } from "./saving.ts";
import { type Create, expectRefusal, never, newScope, sourceOf, text } from "../under-test.ts";
import { patience } from "../../../support/patience.ts";

const sizeBytes = 1024 * 1024;

/** Describes the reads as vitest tests. */
export function describeCutReading(create: Create, failures: FailingObjectStore): void {
  const fault = failing(failures);

  async function saved(store: ArtifactStore, scope: ArtifactScope) {
    return store.save(scope, "a.bin", sourceOf(contentOf(sizeBytes)), text, never);
  }

  async function open(store: ArtifactStore, scope: ArtifactScope) {
    const { body } = await store.open(scope, { filename: "a.bin", version: 0 }, never);
    return body;
  }

  describe("a read", () => {
    test("goes on where the connection was cut", async () => {
      await using store = await create();
      const scope = newScope();
      await saved(store, scope);
      fault("read", { kind: "cut answer", afterBytes: 200_000 }, 3);
      expect((await buffer(await open(store, scope))).equals(contentOf(sizeBytes))).toBe(true);
    });

    test("fails when the connection is cut again and again", async () => {
      await using store = await create();
      const scope = newScope();
      await saved(store, scope);
      fault("read", { kind: "cut answer", afterBytes: 0 }, always);
      await expectRefusal(
        open(store, scope).then(buffer),
        "unavailable",
        '"a.bin"',
        scope.sessionId,
        "again and again",
      );
    });

    test("fails when its content is damaged", async () => {
      await using store = await create();
      const scope = newScope();
      await saved(store, scope);
      fault("read", { kind: "damage answer" }, always);
      await expectRefusal(
        open(store, scope).then(buffer),
        "unavailable",
        '"a.bin"',
        scope.sessionId,
        "damaged",
      );
    });

    test("fails when the rest is refused", async () => {
      await using store = await create();
      const scope = newScope();
      await saved(store, scope);
      fault("read", { kind: "cut answer", afterBytes: 1_000 });
      fault("read", { kind: "error", status: 403, code: "AccessDenied" }, always);
      await expectRefusal(
        open(store, scope).then(buffer),
        "unavailable",
        '"a.bin"',
        scope.sessionId,
        "denies access",
      );
    });

    test("fails when the rest is of another object", async () => {
      await using store = await create();
      const scope = newScope();
      const version = await saved(store, scope);
      fault("read", { kind: "cut answer", afterBytes: 1_000 });
      const body = await open(store, scope);
      await store.deleteVersion(scope, "a.bin", version, never);
      const other = sourceOf(Buffer.alloc(sizeBytes, "other"));
      await store.save(scope, "a.bin", other, text, never);
      await expectRefusal(
        buffer(body),
        "unavailable",
        '"a.bin"',
        scope.sessionId,
        "deleted or replaced",
      );
    });

    test("ends where its owner destroys it while it waits for the rest", async () => {
      await using store = await create();
      const [scope, abort] = [newScope(), new AbortController()];
      await saved(store, scope);
      fault("read", { kind: "cut answer", afterBytes: 1_000 });
      fault("read", { kind: "stall" }, always);
      const body = await open(store, scope);
      const sink = new Writable({ write: (_chunk, _encoding, done) => done() });
      const reading = pipeline(body, sink, { signal: abort.signal });
      await vi.waitFor(() => expect(body.readableDidRead).toBe(true), patience);
      abort.abort();
      await expect(reading).rejects.toThrow("aborted");
      expect(body.destroyed).toBe(true);
    });
  });
}
