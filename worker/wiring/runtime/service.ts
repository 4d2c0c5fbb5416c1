/**
 * The runtime that a worker serves to other processes.
 */
import { readFile } from "node:fs/promises";
import { ConfigError } from "../../config/config.ts";
import type { Config, Environment } from "../../config/config.ts";
import type { RuntimeConfig } from "../../config/servers/runtime-config.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type { Host } from "../host.ts";

/** How a worker's sandboxes are made; its slots, profiles and directories are its own. */
const passedVariables = [
  ...["SANDBOX_BWRAP_BIN", "SANDBOX_MINIMUM", "SANDBOX_UID"],
  ...["SANDBOX_NODE_BIN", "SANDBOX_PYTHON_BIN"],
];

/** Undefined without `RUNTIME_PORT`. The caller owns it. Throws ConfigError, RuntimeError. */
export async function openService(
  { runtime, sandbox: { maxConcurrent } }: Config,
  { log: workerLog, environment }: Host,
  signal: AbortSignal,
): Promise<AsyncDisposable | undefined> {
  if (runtime === undefined) return undefined;
  const [{ openSandboxed }, { serveRuntime }] = await Promise.all([
    import("./sandboxed.ts"),
    import("../../runtime/service/server.ts"),
  ]);
  const { host, port, token } = runtime;
  const log = workerLog.child({ part: "runtime" });
  const tls = await readTls(runtime);
  await using stack = new AsyncDisposableStack();
  const variables = passedOf(environment);
  const technology = {
    kind: "bubblewrap",
    backend: "bubblewrap",
    readiness: "production",
    hardening: "filter",
  } as const;
  const backend = stack.use(
    await openSandboxed(technology, { maxConcurrent, variables, signal }, log),
  );
  const onError = (error: unknown): void => logEvent(log, "runtime.failed", { err: error });
  const service = await serveRuntime({ backend, host, port, token, tls, onError }).catch(
    (error: unknown) => {
      const problem = `"${host}:${port}" cannot be listened on: ${String(error)}`;
      throw new ConfigError([`RUNTIME_HOST, RUNTIME_PORT: ${problem}`]);
    },
  );
  stack.use(service);
  const name = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  const url = `${tls === undefined ? "ws" : "wss"}://${name}:${service.port}`;
  logEvent(log, "runtime.listening", { url, hasToken: token !== undefined });
  return stack.move();
}

function passedOf(environment: Environment): Record<string, string> {
  return Object.fromEntries(
    passedVariables.flatMap((name) => {
      const value = environment[name];
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}

async function readTls({ tls }: RuntimeConfig): Promise<{ cert: Buffer; key: Buffer } | undefined> {
  if (tls === undefined) return undefined;
  const read = (name: string, path: string): Promise<Buffer> =>
    readFile(path).catch((error: unknown) => {
      throw new ConfigError([`${name}: "${path}" cannot be read: ${String(error)}`]);
    });
  const [cert, key] = await Promise.all([
    read("RUNTIME_TLS_CERT", tls.certFile),
    read("RUNTIME_TLS_KEY", tls.keyFile),
  ]);
  return { cert, key };
}
