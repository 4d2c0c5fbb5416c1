/**
 * A worker that serves its runtime.
 */
import { expect, test } from "vitest";
import { createFunctionGateway } from "../../../../worker/gateway/functions.ts";
import { openRemote } from "../../../../worker/runtime/service/remote.ts";
import { freePorts } from "../../../support/brokers/rabbitmq-ports.ts";
import { startRig } from "../../../support/workers/rig.ts";

test(
  "a worker executes code of a program at RUNTIME_PORT, and closes the port",
  { tags: "full" },
  async () => {
    const [port] = (await freePorts(1)) as [number];
    const token = "the-token-of-this-test-is-long-enough";
    const environment = { RUNTIME_PORT: String(port), RUNTIME_TOKEN: token };
    const url = `ws://127.0.0.1:${port}`;
    {
      await using _rig = await startRig({ tools: {}, environment });
      await using backend = await openRemote({ url, token });
      const gateway = createFunctionGateway([
        { id: "math:double", run: ({ n }) => ({ n: 2 * Number(n) }) },
      ]);
      const code = `result = await tools.math.double(n=21)\n__out = result["n"]`;
      const result = await backend.execute({ code, language: "python", gateway });
      expect(result).toMatchObject({ value: 42, backend: { kind: "remote" } });
      expect(result.backend.details).toMatchObject({ kind: "bubblewrap" });
    }
    await expect(openRemote({ url, token })).rejects.toMatchObject({ code: "RUNTIME_UNAVAILABLE" });
  },
);
