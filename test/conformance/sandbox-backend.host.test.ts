/**
 * The host backend, held to the contract of every sandbox backend: it is for development.
 */
import { join } from "node:path";
import { describe } from "vitest";
import { openHost } from "../../worker/sandbox/host/backend.ts";
import { backendOptions, temporaryDirectory } from "../integration/sandbox/sandbox-host.ts";
import { describeSandboxBackend } from "./sandbox-backend.ts";

describe("without a sandbox", { tags: "full" }, () => {
  describeSandboxBackend(
    "host",
    async (_context, whenOver) =>
      openHost(backendOptions(join(await temporaryDirectory(whenOver), "work"))),
    { isolates: false, hasStdin: true },
  );
});
