/**
 * Backends of the library on this machine, with the programs and daemons that they need.
 */
import type { TestContext } from "vitest";
import {
  type RuntimeBackend,
  openBubblewrap,
  openContainerd,
  openDocker,
  openGvisor,
  openRemote,
  openUnsafeHost,
  openWasm,
  serveRuntime,
} from "../../../worker/runtime.ts";
import { containerdHere } from "../containers/containerd-backend.ts";
import { openDockerd } from "../containers/daemon.ts";
import { runscProgram } from "../containers/gvisor-backend.ts";
import type { WhenOver } from "../shared.ts";

/** By kind. Each skips the test where the backend is not to be had, with the reason. */
export const openers = {
  bubblewrap: () => openBubblewrap(),
  docker: async (context: TestContext, whenOver: WhenOver) => {
    const daemon = await openDockerd(context);
    whenOver(async () => daemon[Symbol.asyncDispose]());
    return openDocker({ variables: { DOCKER_SOCKET: daemon.socket } });
  },
  containerd: async (context: TestContext, whenOver: WhenOver) =>
    openContainerd({ variables: await containerdVariables(context, whenOver) }),
  gvisor: async (context: TestContext) =>
    openGvisor({ variables: { SANDBOX_RUNSC_BIN: await runscProgram(context) } }),
  wasm: () => openWasm(),
  unsafe_host: () => openUnsafeHost(),
  /** Over bubblewrap. */
  remote: async (_context: TestContext, whenOver: WhenOver) => {
    const backend = await openBubblewrap();
    whenOver(async () => backend[Symbol.asyncDispose]());
    const service = await serveRuntime({ backend, port: 0 });
    whenOver(async () => service[Symbol.asyncDispose]());
    return openRemote({ url: `ws://127.0.0.1:${service.port}` });
  },
} as const satisfies Record<
  string,
  (context: TestContext, whenOver: WhenOver) => Promise<RuntimeBackend>
>;

/** A worker's variables for containerd, which runs as long as the test. */
export async function containerdVariables(
  context: TestContext,
  whenOver: WhenOver,
): Promise<Readonly<Record<string, string>>> {
  const { ctrBin, address } = await containerdHere(context, whenOver);
  return { SANDBOX_CTR_BIN: ctrBin, SANDBOX_CONTAINERD_ADDRESS: address };
}
