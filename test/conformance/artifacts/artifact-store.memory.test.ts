/**
 * The memory store, held to the contract of every store.
 */
import { createMemoryStore } from "../../../worker/artifacts/memory/store.ts";
import { describeArtifactStore } from "./artifact-store.ts";

describeArtifactStore("memory", () => Promise.resolve(createMemoryStore()), {
  keepsContentInMemory: true,
});
