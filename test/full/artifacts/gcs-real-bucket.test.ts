/**
 * The store against Google's own service: in the bucket GCS_TEST_BUCKET, with the SDK's
 * credentials, such as GOOGLE_APPLICATION_CREDENTIALS. It removes the scopes of its tests.
 *
 * @module-tag full
 */
import { afterAll, beforeEach } from "vitest";
import { describeArtifactStore } from "../../conformance/artifacts/artifact-store.ts";
import { describeObjectStore } from "../../conformance/artifacts/object-store.ts";
import { GcsTestBucket, gcsStore } from "../../support/gcs.ts";

const { GCS_TEST_BUCKET: bucket = "" } = process.env;

beforeEach(({ skip }) => skip(bucket === "", "GCS_TEST_BUCKET names no bucket"));

const create = () => Promise.resolve(gcsStore(undefined, bucket));

afterAll(async () => {
  if (bucket !== "") await new GcsTestBucket(bucket).clear("conformance-");
});

describeArtifactStore("gcs at Google", create);

describeObjectStore("gcs at Google", {
  create,
  seed: (versions) => new GcsTestBucket(bucket).seed(versions),
  listed: 1_050,
});
