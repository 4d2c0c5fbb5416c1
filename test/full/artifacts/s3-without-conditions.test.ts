/**
 * The S3 store on a server that keeps no conditions, held to the contract of every store.
 *
 * @module-tag full
 */
import { s3Store } from "../../support/s3.ts";
import { useFakeS3Process } from "../../support/s3-process.ts";
import { describeArtifactStore } from "../../conformance/artifacts/artifact-store.ts";

const endpoint = useFakeS3Process(["--without-conditions"]);

describeArtifactStore("s3 without conditions", async () => {
  const store = s3Store(endpoint(), "artifacts");
  await store.check(new AbortController().signal);
  return store;
});
