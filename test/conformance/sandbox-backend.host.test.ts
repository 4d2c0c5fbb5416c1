/**
 * The host backend, held to the contract of every sandbox backend: it is for development.
 *
 * @module-tag full
 */
import { join } from "node:path";
import { openHost } from "../../worker/sandbox/host/backend.ts";
import { backendOptions, temporaryDirectory } from "../integration/sandbox/sandbox-host.ts";
import { describeSandboxBackend } from "./sandbox-backend.ts";

describeSandboxBackend(
  "host",
  async (_context, whenOver) =>
    openHost(backendOptions(join(await temporaryDirectory(whenOver), "work"))),
  { isolates: false, hasStdin: true },
);
