/**
 * What every sandbox backend has to do: run `describeSandboxBackend` for each of them, one's own
 * included.
 */
import { describe } from "vitest";
import { shared } from "../support/shared.ts";
import { describeCommands } from "./sandbox-backend/commands.ts";
import { describeEnding } from "./sandbox-backend/ending.ts";
import { describeOutput } from "./sandbox-backend/output.ts";
import { describePlaces } from "./sandbox-backend/places.ts";
import { describeReports } from "./sandbox-backend/reports.ts";
import type { Create, SandboxBackendTraits } from "./sandbox-backend/running.ts";
import { describeSandboxes } from "./sandbox-backend/sandboxes.ts";
import { describeStopping } from "./sandbox-backend/stopping.ts";

/**
 * Describes a backend as vitest tests.
 *
 * `create` is called inside a test and opens a backend that works, in a directory of its own and
 * with nothing else in it. Most tests share one; those that close it have one of their own. It
 * skips the test where the host cannot do what the backend needs. What runs inside is a POSIX shell
 * and coreutils.
 */
export function describeSandboxBackend(
  name: string,
  create: Create,
  traits: SandboxBackendTraits,
): void {
  describe(`sandbox backend: ${name}`, () => {
    const open = shared(create);
    describeCommands(open);
    describeOutput(open, traits);
    describeStopping(open, traits);
    describeEnding(open, traits);
    describePlaces(open, create);
    describeReports(open, traits);
    describeSandboxes(open, create, traits);
  });
}
