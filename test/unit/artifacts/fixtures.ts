/**
 * What the tests of the artifact stores share: directories, scopes, sources and reading back.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import type {
  ArtifactScope,
  ArtifactSource,
  ArtifactStore,
} from "../../../worker/artifacts/store.ts";

/** A signal that does not abort. */
export const never = new AbortController().signal;

export const csv = { mimeType: "text/csv" };

export const scope: ArtifactScope = { root: "ed_test", userId: "user-42", sessionId: "web-1" };

/** A directory that is gone after the test. */
export async function temporaryDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "str-artifacts-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

export function sourceOf(content: string): ArtifactSource {
  const bytes = Buffer.from(content);
  return { sizeBytes: bytes.byteLength, open: () => Readable.from([bytes], { objectMode: false }) };
}

export async function readText(
  store: ArtifactStore,
  filename: string,
  version?: number,
  from: ArtifactScope = scope,
): Promise<string> {
  const opened = await store.open(from, { filename, version }, never);
  return (await buffer(opened.body)).toString();
}
