/**
 * The gateways of running calls: a channel into the sandbox, and behind it the tools that the call
 * may call.
 */
import { CallBudget } from "../gateway/budget.ts";
import { DirectGateway } from "../gateway/direct.ts";
import { maxRefusals } from "../gateway/limits.ts";
import { ProxyHost } from "../gateway/proxy/host.ts";
import { type CallStore, auditedStore } from "../invocation/audit/audited-store.ts";
import {
  type CallGateway,
  type ClosedGateway,
  type GatewayCall,
  type Gateways,
  gatewayLimitsOf,
} from "../invocation/steps/gateway.ts";
import type { ArtifactScope } from "../artifacts/store.ts";
import type { ToolEntry } from "../manifest/manifest.ts";
import { InvocationError } from "../protocol/errors.ts";
import type { Caller } from "../protocol/invocation.ts";
import { logEvent } from "../telemetry/log-event.ts";
import { ArtifactReader } from "./artifact-reader.ts";
import type { CallableSnapshot, CallableTools } from "./callable-tools.ts";
import { type DispatchParts, dispatchOf } from "./dispatch.ts";
import { ReportedCalls } from "./reported-calls.ts";

/** Dependencies of {@link createGateways}. */
export interface GatewaysParts extends DispatchParts {
  readonly tools: Pick<CallableTools, "snapshot">;
  readonly store: CallStore;
  readonly scopeOf: (caller: Caller) => ArtifactScope;
  /** For answers that wait, see {@link ProxyHost}. */
  readonly scratchDir: string;
}

/** Gateways whose calls pass the invoker. */
export function createGateways(parts: GatewaysParts): Gateways {
  return { open: (call) => waitForRequest(parts, call) };
}

/** Makes the gateway when the tool sends something: most of one that is never used is its end. */
function waitForRequest(parts: GatewaysParts, call: GatewayCall): CallGateway {
  const { channel } = call;
  const opened = { snapshot: parts.tools.snapshot(), atMs: parts.clock.nowMs() };
  let gateway: CallGateway | undefined;
  let isClosed = false;
  const open = (): void => {
    // Taking the listener away would take longer.
    if (isClosed) return;
    try {
      gateway = openGateway(parts, call, opened);
    } catch (error) {
      const message = "The gateway of the tool could not be made";
      const failure = new InvocationError("INTERNAL_ERROR", message, { cause: error });
      const close = (): Promise<ClosedGateway> => Promise.reject(failure);
      gateway = { close, [Symbol.asyncDispose]: () => Promise.resolve() };
      channel.destroy();
      call.onAbuse();
    }
  };
  // It may be lost before it is used.
  channel.on("error", () => undefined).once("readable", open);
  const unused: CallGateway = {
    close: () => {
      // Its owner destroys the channel with the sandbox.
      isClosed = true;
      return Promise.resolve({ report: new ReportedCalls(opened.atMs).report });
    },
    [Symbol.asyncDispose]: async () => void (await unused.close()),
  };
  return {
    close: () => (gateway ?? unused).close(),
    [Symbol.asyncDispose]: () => (gateway ?? unused)[Symbol.asyncDispose](),
  };
}

/** What a gateway knows of its call's beginning. */
interface Opened {
  readonly snapshot: CallableSnapshot;
  /** Epoch milliseconds. */
  readonly atMs: number;
}

function openGateway(
  parts: GatewaysParts,
  call: GatewayCall,
  { snapshot, atMs }: Opened,
): CallGateway {
  const { clock, store, scopeOf, scratchDir: directory } = parts;
  const { invocation, tool, channel, context, onAbuse } = call;
  const { catalog, search } = snapshot;
  const limits = gatewayLimitsOf(tool, invocation);
  const budget = new CallBudget(limits, { depth: invocation.depth ?? 0, clock });
  const calls = new ReportedCalls(atMs);
  const reader = new ArtifactReader(auditedStore(store, context.audit), scopeOf(invocation.caller));
  const over = new AbortController();
  const dispatch = dispatchOf(parts, call, snapshot, over.signal);
  const gateway = new DirectGateway(catalog, dispatch, {
    allowed: allowedOf(tool, snapshot),
    requested: invocation.gateway?.tools,
    budget,
    search,
    clock,
    onCall: (record) => calls.add(record),
    loadArtifact: (piece, signal) => reader.read(piece, signal),
  });
  const { maxConcurrentCalls } = limits;
  const host = new ProxyHost(channel, gateway, { maxConcurrentCalls, directory });
  budget.ended.addEventListener("abort", onAbuse, { once: true });
  host.open();
  const end = async (): Promise<ClosedGateway> => {
    over.abort(new Error("the gateway is closed"));
    reader[Symbol.dispose]();
    const { reason, message } = await host.close();
    const isViolation = reason !== "ended" && reason !== "closed" && reason !== "lost";
    if (isViolation) logEvent(context.log, "tool_channel.violated", { reason });
    const closedBecause = isViolation ? message : undefined;
    const report = { ...calls.report, closedBecause };
    return { report, ending: budget.ended.aborted ? endedBy(budget.ended) : undefined };
  };
  let ending: Promise<ClosedGateway> | undefined;
  const close = (): Promise<ClosedGateway> => (ending ??= end());
  return { close, [Symbol.asyncDispose]: async () => void (await close()) };
}

/** Which tools are those of other workers is decided by the manifest in force. */
function allowedOf(
  { gateway }: Pick<ToolEntry, "gateway">,
  { remote }: Pick<CallableSnapshot, "remote">,
): readonly string[] {
  if (gateway === undefined) return [];
  const own = gateway.tools.filter((id) => !remote.has(id));
  return [...own, ...gateway.remote.filter((name) => remote.has(name))];
}

function endedBy({ reason: cause }: AbortSignal): InvocationError {
  const message = `The tool went on after ${maxRefusals} refusals of its gateway`;
  const limit = { limit: "toolCalls", bound: maxRefusals } as const;
  return new InvocationError("EXECUTION_ERROR", message, { cause, limit });
}
