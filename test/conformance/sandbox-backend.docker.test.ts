/**
 * The docker backend, held to the contract of every sandbox backend, with Docker's own daemon.
 */
import { join } from "node:path";
import { describe } from "vitest";
import { openDocker } from "../../worker/sandbox/docker/backend.ts";
import { backendOptions, temporaryDirectory } from "../integration/sandbox/sandbox-host.ts";
import { openDockerd } from "../support/containers/daemon.ts";
import { shared } from "../support/shared.ts";
import { describeSandboxBackend } from "./sandbox-backend.ts";

describe("with Docker's daemon", { tags: "full" }, () => {
  const daemon = shared(openDockerd);
  describeSandboxBackend(
    "docker",
    async (context, whenOver) => {
      const { socket: dockerSocket } = await daemon(context);
      const workBase = join(await temporaryDirectory(whenOver), "work");
      return openDocker({ ...backendOptions(workBase), dockerSocket });
    },
    { isolates: true, hasStdin: true },
  );
});
