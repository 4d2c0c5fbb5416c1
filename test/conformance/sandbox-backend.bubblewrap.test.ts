/**
 * The bubblewrap backend, held to the contract of every sandbox backend.
 */
import { openBackend } from "../integration/sandbox/sandbox-host.ts";
import { describeSandboxBackend } from "./sandbox-backend.ts";

describeSandboxBackend("bubblewrap", (context, whenOver) => openBackend(context, {}, whenOver), {
  isolates: true,
  hasStdin: true,
});
