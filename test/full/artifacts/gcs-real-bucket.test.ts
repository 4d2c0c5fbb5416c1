/**
 * The store against Google's own service: in the bucket GCS_TEST_BUCKET, with the SDK's
 * credentials, such as GOOGLE_APPLICATION_CREDENTIALS. It removes the scopes of its tests.
 *
 * @module-tag full
 */
import { afterAll, beforeEach, expect, test } from "vitest";
import { GcsBucket } from "../../../worker/artifacts/gcs/bucket.ts";
import { GcsClient } from "../../../worker/artifacts/gcs/client.ts";
import { listPages } from "../../../worker/artifacts/gcs/listing.ts";
import { describeArtifactStore } from "../../conformance/artifacts/artifact-store.ts";
import { never, newScope, readText, sourceOf } from "../../conformance/artifacts/under-test.ts";
import { gcsStore } from "../../support/gcs.ts";

const { GCS_TEST_BUCKET: bucket = "" } = process.env;

beforeEach(({ skip }) => skip(bucket === "", "GCS_TEST_BUCKET names no bucket"));

const openStore = () => gcsStore(undefined, bucket);

afterAll(async () => {
  if (bucket === "") return;
  const config = { bucket, endpoint: undefined, isAnonymous: false } as const;
  const whole = { ...config, kmsKey: undefined, storageClass: undefined };
  using client = new GcsClient(whole);
  const objects = new GcsBucket(client, whole);
  const tooLong = () => new Error("the tests leave fewer objects");
  const listing = { bucket: objects, prefix: "conformance-", fields: ["name"], tooLong } as const;
  for await (const { keys } of listPages(listing, never))
    await Promise.all(keys.map((key) => objects.delete(key, never)));
});

describeArtifactStore("gcs at Google", () => Promise.resolve(openStore()));

test("a large file is sent in several requests, which Google verifies", async () => {
  await using store = openStore();
  const [scope, content] = [newScope(), "0123456789abcdef".repeat(1_200_000)];
  await store.save(scope, "large.txt", sourceOf(content), { mimeType: "text/plain" }, never);
  expect((await readText(store, scope, "large.txt")) === content).toBe(true);
});
