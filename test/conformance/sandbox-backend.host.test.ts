/**
 * The host backend, held to the contract of every sandbox backend.
 */
import { join } from "node:path";
import { openHost } from "../../worker/sandbox/host/backend.ts";
import { backendOptions, temporaryDirectory } from "../integration/sandbox/sandbox-host.ts";
import { describeSandboxBackend } from "./sandbox-backend.ts";

async function create() {
  return openHost(backendOptions(join(await temporaryDirectory(), "work")));
}

describeSandboxBackend("host", create, { isolates: false });
