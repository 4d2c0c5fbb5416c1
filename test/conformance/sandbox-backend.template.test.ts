/**
 * Children of a template, held to the contract of every sandbox, as parked ones of a pool are.
 *
 * @module-tag full
 */
import { openParkedBackend, parkInTemplate } from "../support/sandboxes/parked-backend.ts";
import { describeSandboxBackend } from "./sandbox-backend.ts";

describeSandboxBackend(
  "template",
  (context, whenOver) => openParkedBackend(context, parkInTemplate, whenOver),
  { isolates: true, hasStdin: false },
);
