/**
 * Children of a template of Node, held to the contract of every sandbox, as those of Python's are
 * in the ordinary run.
 */
import { describe } from "vitest";
import { openParkedBackend, parkInTemplate } from "../support/sandboxes/parked-backend.ts";
import { describeSandboxBackend } from "./sandbox-backend.ts";

describe("by Node", { tags: "full" }, () => {
  describeSandboxBackend(
    "node template",
    (context, whenOver) => openParkedBackend(context, parkInTemplate, whenOver, "node"),
    { isolates: true, hasStdin: false },
  );
});
