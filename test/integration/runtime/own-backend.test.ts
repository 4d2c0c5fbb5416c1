/**
 * A user's own backend, as the documents show it.
 */
import { describe, test } from "vitest";
import { backendContract } from "../../../worker/runtime/testing.ts";
import { documentedBackend } from "../../support/runtime/documented-backend.ts";

const ownBackend = await documentedBackend();

describe("the backend of docs/runtime.md", { tags: "full" }, () => {
  const newBackend = () => ownBackend("mine");
  for (const { name, run } of backendContract({ newBackend, expectedKind: "mine" }))
    test(name, run);
});
