/**
 * What stores of objects have to do when a server stops in the middle of a body: after 20 s without
 * a byte they go on by another connection, and until then a signal ends the wait.
 */
import { Writable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { describe, expect, test, vi } from "vitest";
import type { ArtifactScope, ArtifactStore } from "../../../../worker/artifacts/store.ts";
import { type Create, never, newScope, sourceOf, text } from "../under-test.ts";
import { type FailingObjectStore, always, failing, largeBytes } from "./failures.ts";
import { contentOf } from "./saving.ts";
import { patience } from "../../../support/patience.ts";

/** More than the kernel keeps of a body that nobody reads. */
const sizeBytes = 5 * 1024 * 1024;

const afterBytes = 200_000;

/** Describes the stalls as vitest tests. */
export function describeStalls(create: Create, failures: FailingObjectStore): void {
  const fault = failing(failures);
  /** Saves, by the request whose body the server stops reading. */
  const saves = [
    ["write", sizeBytes],
    ["part", largeBytes],
  ] as const;

  function save(store: ArtifactStore, scope: ArtifactScope, bytes: number, signal = never) {
    return store.save(scope, "a.bin", sourceOf(contentOf(bytes)), text, signal);
  }

  async function open(store: ArtifactStore, scope: ArtifactScope) {
    const { body } = await store.open(scope, { filename: "a.bin", version: 0 }, never);
    return body;
  }

  describe("a server that stalls", () => {
    test("in the middle of what is read keeps nobody who reads no more", async () => {
      await using store = await create();
      const [scope, abort] = [newScope(), new AbortController()];
      await save(store, scope, sizeBytes);
      fault("read", { kind: "stall answer", afterBytes }, always);
      const body = await open(store, scope);
      let readBytes = 0;
      const sink = new Writable({
        write: (chunk: Buffer, _encoding, done) => {
          readBytes += chunk.byteLength;
          done();
        },
      });
      const reading = pipeline(body, sink, { signal: abort.signal });
      await vi.waitFor(() => expect(readBytes).toBe(afterBytes), patience);
      abort.abort();
      await expect(reading).rejects.toThrow("aborted");
      expect(body.destroyed).toBe(true);
    });

    test.for(saves)("in the middle of a %s of %d bytes ends with the signal", async (row) => {
      const [request, bytes] = row;
      await using store = await create();
      const [scope, signal] = [newScope(), AbortSignal.timeout(500)];
      fault(request, { kind: "stall request", afterBytes }, always);
      const error: unknown = await save(store, scope, bytes, signal).catch(
        (reason: unknown) => reason,
      );
      expect(error).toBe(signal.reason);
      await vi.waitFor(() => expect(failures.kept(scope.root)).toEqual([]), patience);
    });

    test(
      "in the middle of what is read is left for another connection",
      { tags: "full" },
      async () => {
        await using store = await create();
        const scope = newScope();
        await save(store, scope, sizeBytes);
        fault("read", { kind: "stall answer", afterBytes });
        expect((await buffer(await open(store, scope))).equals(contentOf(sizeBytes))).toBe(true);
      },
    );

    test.for(saves)(
      "in the middle of a %s of %d bytes gets it again",
      { tags: "full" },
      async ([request, bytes]) => {
        await using store = await create();
        const scope = newScope();
        fault(request, { kind: "stall request", afterBytes });
        expect(await save(store, scope, bytes)).toMatchObject({ version: 0 });
        expect((await buffer(await open(store, scope))).equals(contentOf(bytes))).toBe(true);
        expect(failures.kept(scope.root)).toHaveLength(1);
      },
    );
  });
}
