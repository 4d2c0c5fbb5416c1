/**
 * The store against Google's own service: docs/artifacts.md, "Test your own bucket at Google".
 *
 * @module-tag full
 */
import { afterAll, beforeEach } from "vitest";
import { describeArtifactStore } from "../../conformance/artifacts/artifact-store.ts";
import { describeMarkStore } from "../../conformance/artifacts/mark-store.ts";
import { describeObjectStore } from "../../conformance/artifacts/object-store.ts";
import { GcsTestBucket, gcsStore } from "../../support/gcs.ts";

const { GCS_TEST_BUCKET: bucket = "" } = process.env;

beforeEach(({ skip }) => skip(bucket === "", "GCS_TEST_BUCKET names no bucket"));

/** Where marks are, in a bucket that no worker uses. */
const marks = ".str-claims/";

const create = () => Promise.resolve(gcsStore(undefined, bucket));

afterAll(async () => {
  if (bucket === "") return;
  await new GcsTestBucket(bucket).clear("conformance-");
  await new GcsTestBucket(bucket).clear(marks);
});

describeArtifactStore("gcs at Google", create);

describeObjectStore("gcs at Google", {
  create,
  seed: (versions) => new GcsTestBucket(bucket).seed(versions),
  listed: 1_050,
});

describeMarkStore("gcs at Google", async () => {
  await new GcsTestBucket(bucket).clear(marks);
  const view = () => gcsStore(undefined, bucket).marks!;
  return [view(), view()];
});
