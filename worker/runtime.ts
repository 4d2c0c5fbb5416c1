/**
 * `secure-tool-runtime/runtime`: the runtime as a library.
 */
import type { RuntimeBackend } from "./runtime/api/backend.ts";
import { unsafeHost } from "./runtime/api/backend.ts";
import type { RemoteOptions } from "./runtime/service/remote.ts";
import type { RuntimeService, ServeOptions } from "./runtime/service/server.ts";
import { type SandboxedOptions, openSandboxed } from "./wiring/runtime/sandboxed.ts";

export {
  type BackendDefinition,
  type ExecuteOptions,
  type Executed,
  type Execution,
  type RuntimeBackend,
  defineBackend,
  unsafeHost,
} from "./runtime/api/backend.ts";
export {
  type CodeEngine,
  type EngineParams,
  type EngineResult,
  codeEngine,
} from "./runtime/api/engine.ts";
export {
  type PartialResult,
  RuntimeError,
  type RuntimeErrorCode,
  type RuntimeErrorOptions,
} from "./runtime/api/errors.ts";
export {
  type Enforcer,
  type Evidence,
  type LimitKind,
  type RuntimeLimits,
} from "./runtime/api/limits.ts";
export {
  type ExecuteRequest,
  type RuntimeProfile,
  runtimeProfiles,
} from "./runtime/api/request.ts";
export { type BackendInfo, type ExecuteResult, type Readiness } from "./runtime/api/result.ts";
export type { ToolCallRecord } from "./runtime/api/tool-calls.ts";
export { Runtime, type RuntimeLogger, type RuntimeOptions } from "./runtime/api/runtime.ts";
export { type DeclaredKind, declaredBackend } from "./runtime/declared.ts";
export type { RemoteOptions } from "./runtime/service/remote.ts";
export type { RuntimeService, ServeOptions } from "./runtime/service/server.ts";
export {
  type ActivityContext,
  ActivityError,
  type ActivityOptions,
  type ActivityRequest,
  temporalActivity,
} from "./runtime/temporal.ts";
export type { SandboxedOptions } from "./wiring/runtime/sandboxed.ts";
export type { FunctionTool } from "./gateway/functions.ts";
export { createFunctionGateway } from "./runtime/api/function-gateway.ts";
export { GatewayError, type ToolGateway } from "./gateway/gateway.ts";

/**
 * Opens sandboxes by bubblewrap, the default: an own process in own namespaces, without a network.
 * The caller owns it. Throws RuntimeError `RUNTIME_UNAVAILABLE`.
 */
export function openBubblewrap(options?: SandboxedOptions): Promise<RuntimeBackend> {
  const technology = {
    kind: "bubblewrap",
    backend: "bubblewrap",
    readiness: "production",
  } as const;
  return openSandboxed(technology, options);
}

/**
 * Opens processes of the bare host, for development: code sees and reaches what this user does.
 * Otherwise as {@link openBubblewrap}.
 */
export function openUnsafeHost(options?: SandboxedOptions): Promise<RuntimeBackend> {
  const technology = { kind: unsafeHost, backend: "host", readiness: "prototype" } as const;
  return openSandboxed(technology, options);
}

/**
 * A backend that executes on a far side, which `serveRuntime` serves there. The caller owns it.
 * Rejects with RuntimeError `RUNTIME_UNAVAILABLE`.
 */
export async function openRemote(options: RemoteOptions): Promise<RuntimeBackend> {
  const service = await import("./runtime/service/remote.ts");
  return service.openRemote(options);
}

/**
 * Serves a backend to `openRemote` of other processes. The caller owns it. Rejects with
 * RuntimeError `RUNTIME_UNAVAILABLE` for an address that is refused.
 */
export async function serveRuntime(options: ServeOptions): Promise<RuntimeService> {
  const service = await import("./runtime/service/server.ts");
  return service.serveRuntime(options);
}
