/**
 * An engine that takes long to create or start a container, and calls that do not wait for it.
 *
 * @module-tag full
 */
import { join } from "node:path";
import { type TestContext, describe, expect, onTestFinished, test, vi } from "vitest";
import { openDocker as openLibrary } from "../../../worker/runtime.ts";
import { createFunctionGateway } from "../../../worker/runtime/api/function-gateway.ts";
import { openDocker } from "../../../worker/sandbox/docker/backend.ts";
import { workerLabel } from "../../../worker/sandbox/docker/container.ts";
import { EngineClient } from "../../../worker/sandbox/docker/engine/client.ts";
import { Engine } from "../../../worker/sandbox/docker/engine/containers.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import {
  backendOptions,
  never,
  request,
  temporaryDirectory,
} from "../../integration/sandbox/sandbox-host.ts";
import { openDockerd } from "../../support/containers/daemon.ts";
import { holdEngine } from "../../support/containers/held-engine.ts";
import { patience } from "../../support/patience.ts";
import { shared } from "../../support/shared.ts";

const daemon = shared(openDockerd);

async function prepare(context: TestContext) {
  const { socket } = await daemon(context);
  const held = await holdEngine(socket);
  const engine = new Engine(new EngineClient(socket, systemClock));
  const containers = async () => [...(await engine.labelled(workerLabel, never)).keys()];
  const areGone = () => vi.waitFor(async () => expect(await containers()).toEqual([]), patience);
  return { held, containers, areGone };
}

describe.each([
  ["create", /containers\/create/],
  ["start", /containers\/\w+\/start/],
] as const)("an engine that does not answer `%s`", (_name, path) => {
  test("does not hold up an abort, and keeps no container", async (context) => {
    const { held, containers, areGone } = await prepare(context);
    const options = backendOptions(join(await temporaryDirectory(), "work"));
    const backend = await openDocker({ ...options, dockerSocket: held.socket });
    onTestFinished(() => backend[Symbol.asyncDispose]());
    await areGone();
    const aborting = new AbortController();
    const reason = new Error("the caller left");
    held.hold(path);
    {
      await using sandbox = await backend.acquire(request(), never);
      const starting = sandbox.start({ argv: ["/bin/sleep", "600"] }, aborting.signal);
      const failed = expect(starting).rejects.toBe(reason);
      await held.answered();
      expect(await containers()).toHaveLength(1);
      aborting.abort(reason);
      await failed;
    }
    expect(await containers()).toHaveLength(1);
    held.release();
    await areGone();
  });

  test("does not hold up the time limit of an execution", async (context) => {
    const { held, areGone } = await prepare(context);
    const languages = ["python"] as const;
    const variables = { DOCKER_SOCKET: held.socket };
    const backend = await openLibrary({ languages, variables });
    onTestFinished(() => backend[Symbol.asyncDispose]());
    await areGone();
    held.hold(path);
    const code = "import time\ntime.sleep(600)";
    const gateway = createFunctionGateway([]);
    const executing = backend.execute({ code, gateway, timeoutMs: 1_000 });
    await expect(executing).rejects.toMatchObject({ code: "TIMEOUT" });
    held.release();
    await areGone();
  });
});
