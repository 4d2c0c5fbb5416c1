/**
 * A tool's output descriptors in somebody else's hands hold nobody up.
 */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { startRig } from "../support/workers/rig.ts";

test(
  "a call ends with its own processes, also when another one holds its output open",
  { tags: "promise-E5" },
  async () => {
    await using rig = await startRig({
      // By an abstract socket, which they share with the host's network.
      tools: {
        holds: { function: "holds", network: "host" },
        gives: { function: "gives_output_away", network: "host" },
      },
    });
    const name = `str-test-${randomUUID()}`;
    const ready = Promise.withResolvers<void>();
    const options = { onStatus: () => ready.resolve() };
    const holding = rig.agent.call(
      { tool: "holds", args: { name, seconds: 600 }, timeoutSeconds: 600 },
      options,
    );
    // It is stopped with the rig; what it then answers is nobody's.
    holding.catch(() => undefined);
    await ready.promise;
    expect(await rig.call("gives", { name })).toMatchObject({
      kind: "success",
      toolResult: { given: 2 },
    });
  },
);
