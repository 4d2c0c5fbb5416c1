/**
 * What every tool gateway has to do: run `describeToolGateway` for each of them, one's own
 * included.
 */
import { describe } from "vitest";
import { describeAborts } from "./aborts.ts";
import { describeCalls } from "./calls.ts";
import { describeChains } from "./chains.ts";
import { describeLimits } from "./limits.ts";
import { describeLookups } from "./lookups.ts";
import type { CreateGateway } from "./under-test.ts";

/**
 * Describes a gateway as vitest tests. `create` is called inside each test, and makes a gateway
 * that serves the tools of the setup, allows those of `allowed` in `suite-tools.ts`, and keeps the
 * limits. The test disposes it.
 */
export function describeToolGateway(name: string, create: CreateGateway): void {
  describe(`tool gateway: ${name}`, () => {
    describeLookups(create);
    describeCalls(create);
    describeChains(create);
    describeAborts(create);
    describeLimits(create);
  });
}
