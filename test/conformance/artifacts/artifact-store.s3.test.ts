/**
 * The S3 store, held to the contract of every store, with the real SDK over HTTP.
 */
import { s3Store } from "../../support/s3.ts";
import { useFakeS3Process } from "../../support/s3-process.ts";
import { describeArtifactStore } from "./artifact-store.ts";

const endpoint = useFakeS3Process();

describeArtifactStore("s3", () => Promise.resolve(s3Store(endpoint(), "artifacts")));
