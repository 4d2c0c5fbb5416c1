/**
 * What every backend answers before it runs anything.
 */
import assert from "node:assert/strict";
import type { RuntimeError } from "../api/errors.ts";
import { type ExecuteRequest, runtimeProfiles } from "../api/request.ts";
import { rejection, rejectsWith } from "./check.ts";
import type { BackendCheck } from "./under-check.ts";

const checks: readonly BackendCheck[] = [
  [
    "rejects with the signal's reason before anything else",
    async ({ backend }) => {
      const reason = new Error("not wanted");
      const signal = AbortSignal.abort(reason);
      assert.equal(await rejection(backend.execute({} as ExecuteRequest, { signal })), reason);
    },
  ],
  [
    "requires a gateway, before code",
    async ({ backend }) => {
      const { message } = await rejectsWith(
        backend.execute({ code: "" } as ExecuteRequest),
        "MISSING_GATEWAY",
      );
      assert.match(message, /gateway is required/);
    },
  ],
  [
    "requires code, before limits",
    async ({ run }) => {
      const { message } = await rejectsWith(
        run("", { limits: { memoryBytes: -1 } }),
        "MISSING_CODE",
      );
      assert.match(message, /code is required/);
    },
  ],
  [
    "refuses negative limits by their names",
    async ({ run, programs }) => {
      for (const [limit, name] of [
        ["memoryBytes", "MemoryBytes"],
        ["maxToolCalls", "MaxToolCalls"],
        ["cpuQuotaMillis", "CPUQuotaMillis"],
      ] as const) {
        const running = run(programs.number(1), { limits: { [limit]: -1 } });
        const { message } = await rejectsWith(running, "INVALID_LIMITS");
        assert.equal(message, `invalid limits: ${name} cannot be negative`);
      }
    },
  ],
  [
    "refuses a language that it does not run",
    async ({ run, programs }) =>
      void (await rejectsWith(
        run(programs.number(1), { language: "cobol" }),
        "RUNTIME_UNAVAILABLE",
      )),
  ],
  [
    "refuses for good a profile that it does not keep",
    async ({ backend, run, programs }) => {
      for (const profile of runtimeProfiles.filter((each) => !backend.profiles.includes(each))) {
        const running = run(programs.number(1), { profile });
        const { message, retryable } = await rejectsWith<Pick<RuntimeError, "retryable">>(
          running,
          "RUNTIME_UNAVAILABLE",
        );
        assert.ok(message.includes(backend.kind), message);
        assert.equal(retryable, false);
      }
    },
  ],
  [
    "starts nothing without a limit that has to be enforced",
    async ({ run, programs }) => {
      // Without a bound there is nothing to keep.
      const running = run(programs.number(1), { requireEnforced: ["memory"] });
      await rejectsWith(running, "RUNTIME_UNAVAILABLE");
    },
  ],
];

export function requestChecks(): readonly BackendCheck[] {
  return checks;
}
