/**
 * Children of a template of Node, held to the contract of every sandbox.
 */
import { openParkedBackend, parkInTemplate } from "../support/sandboxes/parked-backend.ts";
import { describeSandboxBackend } from "./sandbox-backend.ts";

describeSandboxBackend(
  "node template",
  (context, whenOver) => openParkedBackend(context, parkInTemplate, whenOver, "node"),
  { isolates: true, hasStdin: false },
);
