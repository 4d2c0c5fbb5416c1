/**
 * What stores of objects have to do when a save is cut: no version is seen before it is whole, and
 * nothing stays of one that fails.
 */
import { buffer } from "node:stream/consumers";
import { describe, expect, test, vi } from "vitest";
import type { ArtifactScope, ArtifactStore } from "../../../../worker/artifacts/store.ts";
import {
  type FailingObjectStore,
  type ObjectRequest,
  always,
  failing,
  largeBytes,
} from "./failures.ts";
import { type Create, expectRefusal, never, newScope, sourceOf, text } from "../under-test.ts";
import { patience } from "../../../support/patience.ts";

/** Content in which no byte is where another one should be. */
export function contentOf(sizeBytes: number): Buffer {
  const content = Buffer.alloc(sizeBytes);
  const words = new Uint32Array(content.buffer, 0, Math.floor(sizeBytes / 4));
  for (let at = 0; at < words.length; at++) words[at] = at;
  return content;
}

/** Describes the saves as vitest tests. */
export function describeCutSaving(create: Create, failures: FailingObjectStore): void {
  const fault = failing(failures);
  const save = (store: ArtifactStore, scope: ArtifactScope, sizeBytes: number, signal = never) =>
    store.save(scope, "a.bin", sourceOf(contentOf(sizeBytes)), text, signal);

  async function expectWhole(store: ArtifactStore, scope: ArtifactScope, sizeBytes: number) {
    expect(await store.versions(scope, "a.bin", never)).toEqual([0]);
    const { body } = await store.open(scope, { filename: "a.bin", version: 0 }, never);
    expect((await buffer(body)).equals(contentOf(sizeBytes))).toBe(true);
    expect(failures.kept(scope.root)).toHaveLength(1);
  }

  async function expectNothing(store: ArtifactStore, scope: ArtifactScope): Promise<void> {
    expect(await store.versions(scope, "a.bin", never)).toEqual([]);
    await expectRefusal(
      store.open(scope, { filename: "a.bin", version: undefined }, never),
      "not-found",
    );
  }

  describe("a save", () => {
    type Cut = readonly [ObjectRequest, number, "cut request" | "lose answer"];
    const title = "whose %s of %d bytes meets: %s, makes one version";
    const makesOneVersion = async ([request, sizeBytes, kind]: Cut): Promise<void> => {
      await using store = await create();
      const scope = newScope();
      fault(request, { kind });
      const saved = await save(store, scope, sizeBytes);
      expect(saved).toMatchObject({ version: 0, sizeBytes });
      await expectWhole(store, scope, sizeBytes);
      expect(await store.deleteVersion(scope, "a.bin", saved, never)).toBe(true);
    };
    test.for<Cut>([
      ["write", 1024 * 1024, "cut request"],
      ["write", 1024 * 1024, "lose answer"],
      ["part", largeBytes, "cut request"],
    ])(title, makesOneVersion);
    test.for<Cut>([
      ["part", largeBytes, "lose answer"],
      ["complete", largeBytes, "cut request"],
      ["complete", largeBytes, "lose answer"],
    ])(title, { tags: "full" }, makesOneVersion);

    type Sized = readonly [ObjectRequest, number];
    const isKnownWhole = async ([request, sizeBytes]: Sized): Promise<void> => {
      await using store = await create();
      const scope = newScope();
      fault(request, { kind: "lose answer" }, always);
      expect(await save(store, scope, sizeBytes)).toMatchObject({ version: 0, sizeBytes });
      await expectWhole(store, scope, sizeBytes);
    };
    const everyAnswer = "of which every %s loses its answer is known to be complete";
    test.for<Sized>([["write", 10]])(everyAnswer, isKnownWhole);
    test.for<Sized>([["complete", largeBytes]])(everyAnswer, { tags: "full" }, isKnownWhole);

    type Answered = readonly [...Sized, number, string];
    const isWhole = async ([request, sizeBytes, status, code]: Answered): Promise<void> => {
      await using store = await create();
      const scope = newScope();
      fault(request, { kind: "lose answer" });
      fault(request, { kind: "error", status, code }, always);
      expect(await save(store, scope, sizeBytes)).toMatchObject({ version: 0, sizeBytes });
      await expectWhole(store, scope, sizeBytes);
    };
    const repeated = "whose %s of %d bytes is repeated and answered %d is complete";
    test.for<Answered>([
      ["write", 10, 403, "AccessDenied"],
      ["complete", largeBytes, 403, "AccessDenied"],
    ])(repeated, isWhole);
    test.for<Answered>([
      ["write", 10, 429, "TooManyRequests"],
      ["complete", largeBytes, 429, "TooManyRequests"],
    ])(repeated, { tags: "full" }, isWhole);

    test.for(["part", "complete"] as const)(
      "whose %s is refused leaves no version, and no parts",
      async (request) => {
        await using store = await create();
        const scope = newScope();
        fault(request, { kind: "error", status: 403, code: "AccessDenied" }, always);
        await expectRefusal(
          save(store, scope, largeBytes),
          "unavailable",
          '"a.bin"',
          scope.sessionId,
        );
        await expectNothing(store, scope);
        expect(failures.kept(scope.root)).toEqual([]);
      },
    );

    test.for(["part", "complete"] as const)(
      "whose %s is not answered is seen by nobody, and leaves no parts when it is aborted",
      async (request) => {
        await using store = await create();
        const [scope, abort] = [newScope(), new AbortController()];
        fault(request, { kind: "stall" }, always);
        const saving = save(store, scope, largeBytes, abort.signal);
        await vi.waitFor(() => expect(failures.kept(scope.root)).toHaveLength(1), patience);
        await expectNothing(store, scope);
        const reason = new Error("the call is over");
        abort.abort(reason);
        await expect(saving).rejects.toBe(reason);
        expect(failures.kept(scope.root)).toEqual([]);
      },
    );
  });
}
