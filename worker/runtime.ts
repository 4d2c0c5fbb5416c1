/**
 * The runtime as a library, published as `secure-tool-runtime/runtime`: runs code in sandboxes, and
 * lets it call functions of this process.
 */
import { type RuntimeBackend, unsafeHost } from "./runtime/api/backend.ts";
import type { SandboxedOptions } from "./runtime/api/sandboxed-options.ts";
import type { RemoteOptions, RuntimeService, ServeOptions } from "./runtime/service/options.ts";
import type { SandboxTechnology } from "./wiring/runtime/sandboxed.ts";
import type { WasmOptions } from "./runtime/wasm/open.ts";

export type { CatalogEntry } from "./gateway/catalog.ts";
export type { FunctionTool } from "./gateway/functions.ts";
export {
  type ChainResult,
  type ChainStep,
  type CreatedArtifactName,
  type DetailLevel,
  type GatewayCode,
  GatewayError,
  type RunResult,
  type StepError,
  type StepResult,
  type ToolDoc,
  type ToolGateway,
  type ToolOp,
  type ToolSummary,
} from "./gateway/gateway.ts";
export type { ToolExample } from "./protocol/tool-calls/example.ts";
export type { ProgramLanguage } from "./protocol/tool-calls/program.ts";
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
  EngineError,
  type EngineParams,
  type EngineResult,
  codeEngine,
} from "./runtime/api/engine.ts";
export {
  type PartialResult,
  RuntimeError,
  type RuntimeErrorCode,
  type RuntimeErrorOptions,
  type RuntimeOp,
} from "./runtime/api/errors.ts";
export { createFunctionGateway } from "./runtime/api/function-gateway.ts";
export type {
  BoundLimits,
  Enforcer,
  Evidence,
  LimitKind,
  RuntimeLimits,
} from "./runtime/api/limits.ts";
export {
  type ExecuteRequest,
  type RuntimeProfile,
  runtimeProfiles,
} from "./runtime/api/request.ts";
export type { BackendInfo, ExecuteResult, Readiness } from "./runtime/api/result.ts";
export { Runtime, type RuntimeLogger, type RuntimeOptions } from "./runtime/api/runtime.ts";
export type { SandboxedOptions } from "./runtime/api/sandboxed-options.ts";
export type { ToolCallRecord } from "./runtime/api/tool-calls.ts";
export type { Clock } from "./support/clock.ts";
export type { Json, JsonObject } from "./support/json/json.ts";
export { type DeclaredKind, declaredBackend } from "./runtime/declared.ts";
export type {
  RemoteAddress,
  RemoteOptions,
  RuntimeService,
  ServeOptions,
} from "./runtime/service/options.ts";
export {
  type ActivityContext,
  ActivityError,
  type ActivityOptions,
  type ActivityRequest,
  temporalActivity,
} from "./runtime/temporal.ts";
export type { WasmOptions } from "./runtime/wasm/open.ts";

/**
 * Opens sandboxes by bubblewrap, the default: an own process in own namespaces, without a network.
 * The caller owns it. Throws RuntimeError `RUNTIME_UNAVAILABLE`.
 */
export function openBubblewrap(options?: SandboxedOptions): Promise<RuntimeBackend> {
  return open("bubblewrap", "production", "filter", options);
}

/** Opens containers of a Docker engine (`DOCKER_SOCKET`). Otherwise as {@link openBubblewrap}. */
export function openDocker(options?: SandboxedOptions): Promise<RuntimeBackend> {
  return open("docker", "beta", "none", options);
}

/** Opens containers of containerd, as root. Otherwise as {@link openBubblewrap}. */
export function openContainerd(options?: SandboxedOptions): Promise<RuntimeBackend> {
  return open("containerd", "beta", "none", options);
}

/** Opens sandboxes of gVisor, which have a kernel of their own. Otherwise as the others. */
export function openGvisor(options?: SandboxedOptions): Promise<RuntimeBackend> {
  return open("gvisor", "beta", "kernel", options);
}

/** Opens Kata's virtual machines by containerd; never run by our tests. Otherwise as the others. */
export function openKata(options?: SandboxedOptions): Promise<RuntimeBackend> {
  return open("kata", "prototype", "kernel", options);
}

/**
 * Opens processes of the bare host, for development: code sees and reaches what this user does.
 * Otherwise as {@link openBubblewrap}.
 */
export function openUnsafeHost(options?: SandboxedOptions): Promise<RuntimeBackend> {
  return open(unsafeHost, "prototype", "none", options);
}

/** Loads the parts of a worker then only: most of a second's import. */
async function open(
  kind: string,
  readiness: SandboxTechnology["readiness"],
  hardening: SandboxTechnology["hardening"],
  options: SandboxedOptions | undefined,
): Promise<RuntimeBackend> {
  const { openSandboxed } = await import("./wiring/runtime/sandboxed.ts");
  const backend = kind === unsafeHost ? "host" : kind;
  return openSandboxed({ kind, backend, readiness, hardening }, options);
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

/**
 * Opens QuickJS in WebAssembly: threads of this process, for programs that do no more than to call
 * tools. Otherwise as {@link openBubblewrap}.
 */
export async function openWasm(options?: WasmOptions): Promise<RuntimeBackend> {
  const wasm = await import("./runtime/wasm/open.ts");
  return wasm.openWasm(options);
}
