/**
 * Kata with a runtime whose containers run on the host's kernel.
 *
 * @module-tag full
 */
import { release } from "node:os";
import { expect, onTestFinished, test } from "vitest";
import { openKata } from "../../../worker/runtime.ts";
import { containerdVariables } from "../../support/runtime/opened-backends.ts";

test("Kata opened with runc as its runtime is refused", async (context) => {
  const runtime = "io.containerd.runc.v2";
  const variables = {
    ...(await containerdVariables(context, onTestFinished)),
    // Tests beside this one use up the processes of the usual user.
    SANDBOX_UID: "60002",
    SANDBOX_KATA_RUNTIME: runtime,
  };
  await expect(openKata({ variables })).rejects.toMatchObject({
    ...{ name: "RuntimeError", code: "RUNTIME_UNAVAILABLE", op: "open", backend: "kata" },
    cause: {
      message: expect.stringContaining(
        `containers of ${runtime} run on the host's kernel, ${release()}`,
      ) as string,
    },
  });
});
