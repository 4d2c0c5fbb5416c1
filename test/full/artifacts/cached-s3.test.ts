/**
 * The S3 store behind a cache, held to the contract of every store.
 *
 * @module-tag full
 */
import { describeArtifactStore } from "../../conformance/artifacts/artifact-store.ts";
import { workingCache } from "../../support/cached-store.ts";
import { s3Store } from "../../support/s3.ts";
import { useFakeS3Process } from "../../support/s3-process.ts";

const endpoint = useFakeS3Process();

describeArtifactStore("s3 behind a cache", async () =>
  (await workingCache()).before(s3Store(endpoint(), "artifacts")),
);
