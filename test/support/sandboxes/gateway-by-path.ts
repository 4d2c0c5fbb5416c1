/**
 * A backend whose sandboxes inherit no descriptor, made of one whose sandboxes do: their gateway is
 * a socket file.
 */
import type { Sandbox, SandboxBackend } from "../../../worker/sandbox/sandbox.ts";
import {
  gatewayPathInside,
  openGatewaySocket,
} from "../../../worker/sandbox/work/gateway-socket.ts";

/** @param ownerId host uid and gid that sandboxes run as, or undefined for the test's own */
export function withGatewayByPath(
  backend: SandboxBackend,
  ownerId: number | undefined,
): SandboxBackend {
  return {
    scratchDir: backend.scratchDir,
    facts: (profile) => backend.facts(profile),
    share: (path) => backend.share(path),
    async acquire({ hasGateway, ...request }, signal) {
      const sandbox = await backend.acquire(request, signal);
      return hasGateway === true ? connecting(sandbox, ownerId) : sandbox;
    },
    [Symbol.asyncDispose]: () => backend[Symbol.asyncDispose](),
  };
}

function connecting(sandbox: Sandbox, ownerId: number | undefined): Sandbox {
  const { backend, workDir, limits, enforcement, unenforced } = sandbox;
  return {
    ...{ backend, workDir, limits, enforcement, unenforced },
    gatewayPath: sandbox.locate(gatewayPathInside),
    locate: (path) => sandbox.locate(path),
    async start(launch) {
      const gateway = await openGatewaySocket(workDir.path, ownerId);
      const execution = await sandbox.start(launch);
      const { stdin, stdout, stderr } = execution;
      return {
        ...{ gateway, stdin, stdout, stderr },
        exited: execution.exited.finally(() => gateway.destroy()),
        stop: (graceMs) => execution.stop(graceMs),
        end: (limit) => execution.end(limit),
      };
    },
    [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
  };
}
