/**
 * The S3 store on moto, which this project did not write.
 *
 * @module-tag full
 */
import { describeArtifactStore } from "../../conformance/artifacts/artifact-store.ts";
import { describeMarkStore } from "../../conformance/artifacts/mark-store.ts";
import { describeObjectStore } from "../../conformance/artifacts/object-store.ts";
import { moto } from "../../support/s3-servers/moto.ts";
import { useS3Server } from "../../support/s3-servers/server.ts";

const server = useS3Server(moto);

describeArtifactStore("s3 on moto", () => Promise.resolve(server().artifacts.store()));

describeObjectStore("s3 on moto", {
  create: () => Promise.resolve(server().artifacts.store()),
  seed: (versions) => server().artifacts.seed(versions),
  listed: 1_050,
});

describeMarkStore("s3 on moto", () => server().twoViewsOfMarks());
