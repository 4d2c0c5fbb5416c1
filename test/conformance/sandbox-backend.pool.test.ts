/**
 * Parked sandboxes, held to the contract of every sandbox: what starts in them is a command that a
 * waiting Python runner becomes. By their nature two things are tried of them in another way: the
 * environment is what bubblewrap gave the runner, not what Python has added to it since, and a
 * program that does not exist is told of by the tool.
 */
import { describe } from "vitest";
import { openParkedBackend, parkInPool } from "../support/sandboxes/parked-backend.ts";
import { describeSandboxBackend } from "./sandbox-backend.ts";

// What differs from a template's children, which are tried in every run, is how they wait.
describe("by pool", { tags: "full" }, () =>
  describeSandboxBackend(
    "pool",
    (context, whenOver) => openParkedBackend(context, parkInPool, whenOver),
    { isolates: true, hasStdin: false },
  ),
);
