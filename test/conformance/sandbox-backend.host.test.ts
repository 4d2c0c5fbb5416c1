/**
 * The host backend, held to the contract of every sandbox backend.
 */
import { join } from "node:path";
import { openHost } from "../../worker/sandbox/host/backend.ts";
import { systemClock } from "../../worker/support/clock.ts";
import { newId } from "../../worker/support/ids.ts";
import { sandboxUid, temporaryDirectory } from "../integration/sandbox/sandbox-host.ts";
import { describeSandboxBackend } from "./sandbox-backend.ts";

async function create() {
  return openHost({
    workBase: join(await temporaryDirectory(), "work"),
    uid: sandboxUid,
    clock: systemClock,
    newId,
    onRemoveFailed(error) {
      throw error;
    },
    onGuardLost(error) {
      throw error;
    },
  });
}

describeSandboxBackend("host", create, { isolates: false });
