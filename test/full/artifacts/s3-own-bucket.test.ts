/**
 * The S3 store in a bucket of the developer's: docs/artifacts.md, "Test your own bucket".
 *
 * @module-tag full
 */
import { afterAll, beforeAll, beforeEach, describe } from "vitest";
import { describeArtifactStore } from "../../conformance/artifacts/artifact-store.ts";
import { describeMarkStore } from "../../conformance/artifacts/mark-store.ts";
import { describeObjectStore } from "../../conformance/artifacts/object-store.ts";
import { S3Bucket } from "../../support/s3-servers/bucket.ts";

const {
  S3_TEST_BUCKET: name,
  S3_TEST_REGION: region = "us-east-1",
  S3_TEST_ENDPOINT: endpoint,
  S3_TEST_PATH_STYLE: pathStyle,
  S3_TEST_CHECKSUMS: checksums,
} = process.env;

const bucket = new S3Bucket(name ?? "", {
  region,
  endpoint,
  isPathStyle: pathStyle === "1",
  checksums: checksums === "required" ? checksums : "supported",
});

let isConditional = false;

beforeAll(async () => {
  if (name === undefined) return;
  if ((await bucket.keys()).length > 0) throw new Error("S3_TEST_BUCKET is not empty");
  await using store = await bucket.checkedStore();
  isConditional = store.marks !== undefined;
});

beforeEach(({ skip }) => skip(name === undefined, "S3_TEST_BUCKET is not set"));

afterAll(async () => {
  if (name !== undefined) await bucket.clear();
  bucket[Symbol.dispose]();
});

const create = () => bucket.checkedStore();

describeArtifactStore("s3 in a bucket of one's own", create);

describeObjectStore("s3 in a bucket of one's own", {
  create,
  seed: (versions) => bucket.seed(versions),
});

describe("where the server keeps conditions", () => {
  beforeEach(({ skip }) => skip(!isConditional, "the server keeps no conditions"));

  describeMarkStore("s3 in a bucket of one's own", async () => {
    await bucket.clear(".str-claims/");
    return bucket.twoViewsOfMarks();
  });
});
