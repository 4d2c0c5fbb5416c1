/**
 * The worker's own path of a call: its sandbox, its runners, its limits, and no broker.
 */
import { wireInvoker } from "../../worker/wiring/calls.ts";
import { wireDescribedTools } from "../../worker/wiring/discovery.ts";
import { artifactScope } from "../../worker/artifacts/scope.ts";
import { type DescribedTools, deriveTimeoutMs } from "../../worker/discovery/described-tools.ts";
import type { Invoker } from "../../worker/invocation/call-context.ts";
import type { Manifest, Runtime } from "../../worker/manifest/manifest.ts";
import type { NetworkPolicy } from "../../worker/protocol/network-rules.ts";
import type { Caller } from "../../worker/protocol/invocation.ts";
import type { Logger } from "../../worker/telemetry/logger.ts";
import { CallArtifacts } from "../artifacts.ts";
import { withNetwork } from "../network/learn.ts";
import { type DebugOptions, debugged } from "./debug/debugged-backend.ts";
import { type SandboxObserver, observed } from "./debug/observed-backend.ts";
import { callableOf } from "./callable-of.ts";
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
  /**
   * Derives what calls of the tool are held to, from its code as it is now: a worker would hold a
   * call to the description before while changed code is described. Tools that it may call by its
   * gateway are described, too. One call at a time. Rejects with the signal's reason.
   */
  readonly describe: (tool: string, signal: AbortSignal) => Promise<void>;
}

/** Opens it over a foundation. */
export function openLocalInvoker(
  opened: LocalFoundation,
  { caller, observer, debug, network }: LocalInvokerOptions,
): LocalInvoker {
  const { config, host, foundation, descriptionsDir } = opened;
  const { catalog } = foundation;
  const wire = (runtime?: Runtime): DescribedTools => {
    // A program need not describe itself.
    const log = runtime === "executable" ? host.log.child({}, { level: "error" }) : host.log;
    return wireDescribedTools(config, { ...host, log }, foundation, descriptionsDir);
  };
  let described = wire();
  const isolated =
    network === undefined
      ? foundation.backend
      : withNetwork(foundation.backend, network, foundation.networkOf);
  const backend = debug ? debugged(isolated, debug) : isolated;
  const parts = { ...foundation, backend: observed(backend, observer) };
  const { invoker, starts, checker } = wireInvoker(config, host, parts, {
    described: {
      forCall: (tool, signal) => described.forCall(tool, signal),
      get settled() {
        return described.settled;
      },
    },
  });
  const scope = artifactScope(config.artifacts.scope, caller);
  return {
    invoker,
    manifest: catalog.manifest,
    artifacts: new CallArtifacts(foundation.store, scope),
    log: host.log,
    describe: async (name, signal) => {
      described[Symbol.dispose]();
      const tool = catalog.resolve(name);
      described = wire(tool?.runtime);
      if (tool === undefined) return;
      const callable = callableOf(catalog.manifest, tool.gateway?.tools ?? []);
      const describing = callable.map((each) => described.forCall(each, signal, deriveTimeoutMs));
      const { parameters } = await described.forCall(tool, signal, deriveTimeoutMs);
      await Promise.all(describing);
      if (parameters !== undefined) checker.warm();
    },
    [Symbol.asyncDispose]: async () => {
      await starts[Symbol.asyncDispose]();
      await checker[Symbol.asyncDispose]();
      described[Symbol.dispose]();
    },
  };
}
