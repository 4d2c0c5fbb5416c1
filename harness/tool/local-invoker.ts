/**
 * The worker's own path of a call: its sandbox, its runners, its limits, and no broker.
 */
import { wireInvoker } from "../../worker/wiring/calls.ts";
import { artifactScope } from "../../worker/artifacts/scope.ts";
import type { Invoker } from "../../worker/invocation/invoker.ts";
import type { Manifest } from "../../worker/manifest/manifest.ts";
import type { NetworkPolicy } from "../../worker/protocol/network-rules.ts";
import type { Caller } from "../../worker/protocol/invocation.ts";
import type { Logger } from "../../worker/telemetry/logger.ts";
import { CallArtifacts } from "../artifacts.ts";
import { withNetwork } from "../network/learn.ts";
import { type DebugOptions, debugged } from "./debug/debugged-backend.ts";
import { type SandboxObserver, observed } from "./debug/observed-backend.ts";
import type { LocalFoundation } from "./local-foundation.ts";

/** Who calls, and who watches. */
export interface LocalInvokerOptions {
  readonly caller: Caller;
  readonly observer: SandboxObserver;
  /** Undefined in a sandbox. */
  readonly debug?: DebugOptions | undefined;
  /** In place of that of profile and manifest. */
  readonly network?: NetworkPolicy | undefined;
}

/** An open invoker. Its owner disposes it before its foundation. */
export interface LocalInvoker extends AsyncDisposable {
  readonly invoker: Invoker;
  readonly manifest: Manifest;
  /** Of the caller, in memory. */
  readonly artifacts: CallArtifacts;
  readonly log: Logger;
}

/** Opens it over a foundation. */
export function openLocalInvoker(
  { config, host, foundation }: LocalFoundation,
  { caller, observer, debug, network }: LocalInvokerOptions,
): LocalInvoker {
  const isolated =
    network === undefined
      ? foundation.backend
      : withNetwork(foundation.backend, network, foundation.networkOf);
  const backend = debug ? debugged(isolated, debug) : isolated;
  const { invoker, starts, checker } = wireInvoker(config, host, {
    ...foundation,
    backend: observed(backend, observer),
  });
  const scope = artifactScope(config.artifacts.scope, caller);
  return {
    invoker,
    manifest: foundation.catalog.manifest,
    artifacts: new CallArtifacts(foundation.store, scope),
    log: host.log,
    [Symbol.asyncDispose]: async () => {
      await starts[Symbol.asyncDispose]();
      await checker[Symbol.asyncDispose]();
    },
  };
}
