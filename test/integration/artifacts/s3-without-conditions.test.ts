/**
 * Savers of several workers on an S3 server that keeps no conditions.
 */
import { createHash } from "node:crypto";
import { text as textOf } from "node:stream/consumers";
import { Readable } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import type { ArtifactStore } from "../../../worker/artifacts/store.ts";
import { s3Store, useFakeS3 } from "../../support/s3.ts";

const server = useFakeS3({ buckets: ["artifacts"], ignoresConditions: true });
const never = new AbortController().signal;
const scope = { root: "ed_test", userId: "user-42", sessionId: "web-1" };
const text = { mimeType: "text/plain" };

/** The store of a worker that has started. */
async function openWorker(): Promise<ArtifactStore> {
  const store = s3Store(server().endpoint, "artifacts");
  onTestFinished(() => store[Symbol.asyncDispose]());
  await store.check(never);
  return store;
}

function save(store: ArtifactStore, filename: string, content: string) {
  const bytes = Buffer.from(content);
  const source = { sizeBytes: bytes.byteLength, open: () => Readable.from([bytes]) };
  return store.save(scope, filename, source, text, never);
}

test("the check tells what is missing, and there are no marks", async () => {
  const store = s3Store(server().endpoint, "artifacts");
  onTestFinished(() => store[Symbol.asyncDispose]());
  const limits = await store.check(never);
  expect(limits).toEqual([expect.stringContaining("If-None-Match")]);
  expect(store.marks).toBeUndefined();
});

async function expectNothingLost(savers: number): Promise<void> {
  const workers = await Promise.all([openWorker(), openWorker(), openWorker(), openWorker()]);
  const contents = Array.from({ length: savers }, (_, index) => `content ${index}`);
  const saved = await Promise.all(
    contents.map((content, index) => save(workers[index % 4]!, "shared.txt", content)),
  );
  expect(new Set(saved.map(({ version }) => version)).size).toBe(savers);
  const read = saved.map(async ({ version }) => {
    const { body } = await workers[0].open(scope, { filename: "shared.txt", version }, never);
    return textOf(body);
  });
  expect(await Promise.all(read)).toEqual(contents);
  const keys = [...server().bucket("artifacts").objects.keys()];
  expect(keys.filter((key) => key.startsWith(".str-claims/"))).toEqual([]);
}

const title = "%d savers in four workers lose no content of one name, and leave no reservation";
test.for([8])(title, expectNothingLost);
// Each sees the announcements of all others, again and again.
test.for([32])(title, { tags: "full" }, expectNothingLost);

test("a version whose saver was killed stays free, since its object may still arrive", async () => {
  const digest = createHash("sha256").update("ed_test/user-42/web-1/late.txt/0").digest("hex");
  const announcement = `.str-claims/versions/${digest}/of-a-killed-worker`;
  const noConditions = { ifNoneMatch: undefined, ifMatch: undefined };
  server().bucket("artifacts").put(announcement, Buffer.from("reserved"), {}, noConditions);
  expect(await save(await openWorker(), "late.txt", "own")).toMatchObject({ version: 1 });
});
