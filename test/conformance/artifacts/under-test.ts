/**
 * What the suites of the artifact stores share: scopes, sources, reading back, refusals.
 */
import { randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { expect } from "vitest";
import { StoreError } from "../../../worker/artifacts/store.ts";
import type {
  ArtifactScope,
  ArtifactSource,
  ArtifactStore,
  StoreErrorReason,
} from "../../../worker/artifacts/store.ts";

/** Makes a store that works, inside a test, which disposes it. */
export type Create = () => Promise<ArtifactStore>;

export const never = new AbortController().signal;
export const text = { mimeType: "text/plain" };

export function newScope(scope: Partial<ArtifactScope> = {}): ArtifactScope {
  const unique = randomUUID();
  return {
    root: `conformance-${unique}`,
    userId: "user-42",
    sessionId: `web-session-${unique}`,
    ...scope,
  };
}

export function sourceOf(content: string | Uint8Array): ArtifactSource {
  const bytes = Buffer.from(content);
  return { sizeBytes: bytes.byteLength, open: () => streamOf([bytes]) };
}

export function streamOf(chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Readable {
  return Readable.from(chunks, { objectMode: false });
}

export function saveText(
  store: ArtifactStore,
  scope: ArtifactScope,
  filename: string,
  content: string,
) {
  return store.save(scope, filename, sourceOf(content), text, never);
}

export async function readText(
  store: ArtifactStore,
  scope: ArtifactScope,
  filename: string,
  version?: number,
): Promise<string> {
  const opened = await store.open(scope, { filename, version }, never);
  return (await buffer(opened.body)).toString();
}

export async function refusal(attempt: Promise<unknown>): Promise<StoreError> {
  const error = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StoreError);
  return error as StoreError;
}

export async function expectRefusal(
  attempt: Promise<unknown>,
  reason: StoreErrorReason,
  ...mentions: string[]
): Promise<void> {
  const error = await refusal(attempt);
  expect(error.reason).toBe(reason);
  for (const mention of mentions) expect(error.message).toContain(mention);
}
