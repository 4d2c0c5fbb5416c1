/**
 * The gateway of a call whose tool may call other tools: `worker/runtime/` implements it.
 */
import type { Duplex } from "node:stream";
import { narrowLimits } from "../../gateway/limits.ts";
import { type GatewayLimits, defaultGatewayLimits } from "../../protocol/tool-calls/limits.ts";
import type { ToolEntry } from "../../manifest/manifest.ts";
import type { InvocationError } from "../../protocol/errors.ts";
import type { GatewayReport } from "../../protocol/execution.ts";
import type { Invocation } from "../../protocol/invocation.ts";
import type { RunnerGateway } from "../../runners/runner.ts";
import { type Sandbox, gatewayFd } from "../../sandbox/sandbox.ts";
import type { CallContext } from "../call-context.ts";
import type { CallSlot } from "../slots/call-slot.ts";

/** A call whose tool runs. */
export interface GatewayCall {
  readonly tool: ToolEntry;
  readonly invocation: Invocation;
  /** The worker's end of the tool's channel. */
  readonly channel: Duplex;
  readonly slot: Pick<CallSlot, "begin" | "end">;
  /** Epoch milliseconds at which the tool's time ends. */
  readonly deadlineMs: number;
  readonly context: CallContext;
  /** Told of each tool that is about to run for the call, which waits for it. */
  readonly onBegin: (tool: Pick<ToolEntry, "idempotent">) => Promise<void>;
  /** Ends the tool, which went on after too many refusals. */
  readonly onAbuse: () => void;
}

/** The limits of a call's gateway: those of the entry, which the request may tighten. */
export function gatewayLimitsOf(
  { gateway }: Pick<ToolEntry, "gateway">,
  { gateway: requested }: Pick<Invocation, "gateway">,
): GatewayLimits {
  const granted = { ...defaultGatewayLimits, ...(gateway?.limits ?? noCalls) };
  return narrowLimits(granted, requested?.limits ?? {});
}

/** Of an entry that has no gateway any more. */
const noCalls = { maxToolCalls: 0 };

/** What the runner of a call learns of its gateway; undefined without one. */
export function runnerGateway(
  tool: Pick<ToolEntry, "gateway">,
  invocation: Pick<Invocation, "gateway">,
  { gatewayPath: path }: Pick<Sandbox, "gatewayPath">,
): RunnerGateway | undefined {
  if (tool.gateway === undefined) return undefined;
  const { maxConcurrentCalls } = gatewayLimitsOf(tool, invocation);
  return { channel: path === undefined ? { fd: gatewayFd } : { path }, maxConcurrentCalls };
}

/** What a tool did by its gateway. */
export interface ClosedGateway {
  /** Undefined without a gateway. */
  readonly report: GatewayReport | undefined;
  /** Why the gateway ended the tool; undefined if it did not. */
  readonly ending?: InvocationError | undefined;
}

/** Its owner closes it. */
export interface CallGateway extends AsyncDisposable {
  /** Ends all that the tool has started by it. Idempotent. */
  close(): Promise<ClosedGateway>;
}

/** Of a tool that calls no others. */
export const noGateway: CallGateway = {
  close: () => Promise.resolve({ report: undefined }),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

/** Opens gateways. */
export interface Gateways {
  open(call: GatewayCall): CallGateway;
}
