/**
 * `secure-tool-runtime/runtime`: the runtime as a library.
 */
import type { RuntimeBackend } from "./runtime/api/backend.ts";
import { unsafeHost } from "./runtime/api/backend.ts";
import type { WasmOptions } from "./runtime/wasm/open.ts";
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
export type { WasmOptions } from "./runtime/wasm/open.ts";
export type { SandboxedOptions } from "./wiring/runtime/sandboxed.ts";
export { type FunctionTool, createFunctionGateway } from "./gateway/functions.ts";
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
 * Opens QuickJS in WebAssembly: threads of this process, for programs that do no more than to call
 * tools. Otherwise as {@link openBubblewrap}.
 */
export async function openWasm(options?: WasmOptions): Promise<RuntimeBackend> {
  const wasm = await import("./runtime/wasm/open.ts");
  return wasm.openWasm(options);
}
