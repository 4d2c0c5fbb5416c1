/**
 * Daemons, and what they keep of the containers of sandboxes.
 */
import { type TestContext, onTestFinished } from "vitest";
import { ContainerdClient } from "../../../worker/sandbox/containerd/client.ts";
import { workerLabel } from "../../../worker/sandbox/docker/container.ts";
import { EngineClient } from "../../../worker/sandbox/docker/engine/client.ts";
import { Engine } from "../../../worker/sandbox/docker/engine/containers.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { never } from "../../integration/sandbox/sandbox-host.ts";
import { containerdHere } from "./containerd-backend.ts";
import { openDockerd } from "./daemon.ts";

export interface ContainerDaemon {
  /** A worker's, to use it. */
  readonly variables: Readonly<Record<string, string>>;
  /** Text that has the directories of the owners of all containers. */
  owners(): Promise<string>;
}

/** By backend. Each runs as long as the test, and skips it where it does not start. */
export const daemons = {
  docker: async (context: TestContext): Promise<ContainerDaemon> => {
    const daemon = await openDockerd(context);
    onTestFinished(() => daemon[Symbol.asyncDispose]());
    const engine = new Engine(new EngineClient(daemon.socket, systemClock));
    return {
      variables: { DOCKER_SOCKET: daemon.socket },
      owners: async () => [...(await engine.labelled(workerLabel, never)).values()].join("\n"),
    };
  },
  containerd: async (context: TestContext): Promise<ContainerDaemon> => {
    const settings = await containerdHere(context);
    const { ctrBin, address } = settings;
    const client = new ContainerdClient(settings, "default");
    const namespaces = async (): Promise<readonly string[]> =>
      (await client.ask(["namespaces", "list"])).trim().split("\n").slice(1);
    const within = (line: string): ContainerdClient => client.in(line.split(/\s/)[0] ?? "");
    // Containers outlive this daemon.
    onTestFinished(async () => {
      await Promise.all((await namespaces()).map((line) => within(line).removeAll()));
    });
    return {
      variables: { SANDBOX_CTR_BIN: ctrBin, SANDBOX_CONTAINERD_ADDRESS: address },
      owners: async () => {
        const found = (await namespaces()).map(async (line) => {
          const tasks = await within(line).ask(["tasks", "list", "--quiet"]);
          return tasks === "" ? [] : [line];
        });
        return (await Promise.all(found)).flat().join("\n");
      },
    };
  },
} as const;
