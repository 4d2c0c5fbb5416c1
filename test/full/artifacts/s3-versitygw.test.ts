/**
 * The S3 store on Versity's S3 gateway, which this project did not write.
 *
 * @module-tag full
 */
import { describeArtifactStore } from "../../conformance/artifacts/artifact-store.ts";
import { describeMarkStore } from "../../conformance/artifacts/mark-store.ts";
import { describeObjectStore } from "../../conformance/artifacts/object-store.ts";
import { useS3Server } from "../../support/s3-servers/server.ts";
import { versitygw } from "../../support/s3-servers/versitygw.ts";

const server = useS3Server(versitygw);

describeArtifactStore("s3 on versitygw", () => Promise.resolve(server().artifacts.store()));

describeObjectStore("s3 on versitygw", {
  create: () => Promise.resolve(server().artifacts.store()),
  seed: (versions) => server().artifacts.seed(versions),
});

describeMarkStore("s3 on versitygw", () => server().twoViewsOfMarks());
