/**
 * A tool's output descriptors in somebody else's hands hold nobody up.
 */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { startRig } from "../support/workers/rig.ts";
import { awaitedLater } from "../support/workers/awaited-later.ts";

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
    // It is stopped with the rig; what it then answers is nobody's.
    const call = { tool: "holds", args: { name, seconds: 600 }, timeoutSeconds: 600 };
    void awaitedLater(rig.agent.call(call, options));
    await ready.promise;
    expect(await rig.call("gives", { name })).toMatchObject({
      kind: "success",
      toolResult: { given: 2 },
    });
  },
);
