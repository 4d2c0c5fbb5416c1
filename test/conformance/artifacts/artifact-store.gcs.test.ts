/**
 * The store of Google Cloud Storage, held to the contract of every store, over HTTP with tokens of
 * the real SDK.
 *
 * @module-tag full
 */
import { gcsStore } from "../../support/gcs.ts";
import { useFakeGcsProcess } from "../../support/gcs-process.ts";
import { describeArtifactStore } from "./artifact-store.ts";

const endpoint = useFakeGcsProcess();

describeArtifactStore("gcs", () => Promise.resolve(gcsStore(endpoint(), "artifacts")));
