/**
 * Wires what answers calls, over the foundation: from a session's deliveries to their settlement.
 */
import { artifactScope } from "../artifacts/scope.ts";
import type { ArtifactScope } from "../artifacts/store.ts";
import type { ConsumedSession } from "../broker/broker.ts";
import { maxCallSeconds } from "../broker/open.ts";
import type { Config } from "../config/config.ts";
import { DescribedTools } from "../discovery/described-tools.ts";
import { Answers } from "../invocation/answers.ts";
import { CancelListener } from "../invocation/cancellation/cancel-listener.ts";
import { Cancels } from "../invocation/cancellation/cancels.ts";
import type { CallSignals } from "../invocation/call.ts";
import { Consumer, maxDeliveriesInFlight } from "../invocation/deliveries/consumer.ts";
import { SchemaChecker } from "../invocation/arguments/schema-checker.ts";
import { receiveDelivery } from "../invocation/handler.ts";
import type { Invoker } from "../invocation/call-context.ts";
import { createInvoker } from "../invocation/invoker.ts";
import { countedStore } from "../invocation/counted-store.ts";
import { Ledger } from "../invocation/claims/ledger.ts";
import { LentSlots } from "../invocation/slots/call-slot.ts";
import { FreeDisk } from "../invocation/slots/capacity.ts";
import type { Gateways } from "../invocation/steps/gateway.ts";
import { type ResolveParts, resolveProfile } from "../invocation/steps/resolve.ts";
import { Transfers } from "../invocation/steps/transfers.ts";
import { TopicTools } from "../invocation/read-request.ts";
import { openClaims } from "../invocation/claims/shared-claims.ts";
import { CallSeries } from "../pool/call-series.ts";
import { openStarts } from "../pool/open.ts";
import type { Caller } from "../protocol/invocation.ts";
import type { Starts } from "../pool/starts.ts";
import { CallableTools } from "../runtime/callable-tools.ts";
import type { RemoteTools } from "../runtime/remote/remote-tools.ts";
import { withoutBroker } from "../runtime/remote/without-broker.ts";
import { type GatewaysParts, createGateways } from "../runtime/gateways.ts";
import { Semaphore } from "../support/semaphore.ts";
import {
  type CallFollower,
  type ReceivedCall,
  followsNothing,
} from "../telemetry/call-follower.ts";
import { EgressCounts } from "../telemetry/metrics/egress-counts.ts";
import { StoreCounts } from "../telemetry/metrics/store-counts.ts";
import type { Foundation } from "./foundation.ts";
import type { Host } from "./host.ts";

/** Threads that parse large requests. The consumer bounds the requests that wait for a thread. */
const maxParserThreads = 2;

/** The caller disposes pool and checker before the foundation. */
export interface WiredInvoker {
  readonly invoker: Invoker;
  readonly starts: Starts;
  readonly checker: SchemaChecker;
  /** The slots of each queue. */
  readonly slots: ReadonlyMap<string, Semaphore>;
  readonly lentSlots: LentSlots;
}

/** Parts of an invoker that callers may bring. */
export interface InvokerOptions {
  /** The manifest's descriptions unless given. */
  readonly described?: Pick<DescribedTools, "forCall" | "settled">;
  /** Counts that are not shown unless given. */
  readonly egress?: EgressCounts;
  /** Counts that are not shown unless given. */
  readonly storeCounts?: StoreCounts;
  /** Follows calls that tools make; nothing does unless given. */
  readonly follow?: (received: ReceivedCall) => CallFollower;
  /** In place of those over the manifest. */
  readonly gateways?: Gateways;
  /** Tools of other workers; none can be reached unless given. */
  readonly remote?: Pick<RemoteTools, "directory" | "call">;
}

/** What an invoker stands on. */
export type InvokerFoundation = Omit<Foundation, "catalog" | typeof Symbol.asyncDispose> & {
  readonly catalog: Pick<Foundation["catalog"], "manifest" | "resolve">;
};

/** Wires invoker, sandbox pool and checker of arguments. */
export function wireInvoker(
  config: Config,
  host: Host,
  foundation: InvokerFoundation,
  {
    described = new DescribedTools(host),
    egress = new EgressCounts(),
    storeCounts = new StoreCounts(),
    follow = () => followsNothing,
    remote = withoutBroker(foundation.catalog.manifest),
    gateways: brought,
  }: InvokerOptions = {},
): WiredInvoker {
  const { catalog, toolsets, runners, backend, store, profiles, hostAccess, networkOf } =
    foundation;
  // A broker with queues bounds the waiting calls by its prefetch limits.
  const maxWaiting = config.broker.kind === "dev" ? config.sandbox.maxQueued : Infinity;
  const slots = new Map<string, Semaphore>();
  for (const [queue, capacity] of config.queues)
    slots.set(queue, new Semaphore({ capacity, maxWaiting }));
  // A DevBroker has no queues, so that tools may name any.
  const others = slots.values().next().value ?? new Semaphore({ capacity: 1, maxWaiting });
  const slotsOf = (queue: string): Semaphore => slots.get(queue) ?? others;
  const resolving: ResolveParts = {
    resolve: (toolName) => catalog.resolve(toolName),
    profiles,
    defaultProfile: config.sandbox.defaultProfile,
    hostNetwork: config.sandbox.hostNetwork,
  };
  const lentSlots = new LentSlots(config.sandbox.maxSuspended, maxWaiting);
  const series = new CallSeries(host.clock);
  const starts = openStarts({
    runners,
    backend,
    hostAccess,
    networkOf,
    versions: foundation.codeWatch,
    maxBytes: config.sandbox.maxWarmBytes,
    suspendedCalls: () => lentSlots.count,
    series,
    profileOf: (tool) => resolveProfile(resolving, tool, { requestedProfile: undefined }),
    clock: host.clock,
    log: host.log.child({ part: "starts" }),
  });
  const checker = new SchemaChecker(host.clock);
  const counted = countedStore(store, storeCounts, host.clock);
  const scopeOf = (caller: Caller): ArtifactScope => artifactScope(config.artifacts.scope, caller);
  const manifestGateways: GatewaysParts = {
    // Its calls come back to the invoker that opened the gateway.
    invoker: { invoke: (invocation, context) => invoker.invoke(invocation, context) },
    tools: new CallableTools({
      tools: () => catalog.manifest.tools,
      described: () => described.settled,
      remote: () => remote.directory.entries,
    }),
    remote,
    series,
    store: counted,
    scopeOf,
    scratchDir: backend.scratchDir,
    follow,
    log: host.log,
    clock: host.clock,
  };
  const gateways = brought ?? createGateways(manifestGateways);
  const invoker: Invoker = createInvoker({
    ...resolving,
    holdCode: ({ toolset }) => toolset && toolsets?.lease(toolset),
    slotsOf,
    lentSlots,
    gateways,
    starts,
    store: counted,
    scopeOf,
    artifactLimits: config.artifacts.limits,
    transfers: new Transfers(),
    toolLogs: config.toolLogs,
    egress,
    times: {
      defaultSeconds: config.defaultTimeoutSeconds,
      maxSeconds: maxCallSeconds(config.broker),
    },
    disk: new FreeDisk(config.sandbox.workDir, host.clock),
    minFreeDiskBytes: config.sandbox.minFreeDiskBytes,
    described: (tool, signal) => described.forCall(tool, signal),
    checker,
    clock: host.clock,
  });
  return { invoker, starts, checker, slots, lentSlots };
}

/** A consumer that has not started. The caller disposes it after the last call. */
export interface WiredConsumer extends AsyncDisposable {
  readonly consumer: Consumer;
  /** Start it before the consumer. */
  readonly cancelListener: CancelListener;
  readonly answers: Answers;
}

/** Dependencies of the consumer. */
export interface ConsumerParts {
  readonly host: Host;
  readonly foundation: Foundation;
  readonly session: ConsumedSession;
  readonly invoker: Invoker;
  readonly signals: CallSignals;
  /** Follows a delivery from its receipt on. */
  readonly follow: (received: ReceivedCall) => CallFollower;
}

/** Wires the consumer of a session. The caller runs it, and disposes the result. */
export function wireConsumer(
  config: Config,
  { host, foundation, session, invoker, signals, follow }: ConsumerParts,
): WiredConsumer {
  const { clock, log } = host;
  const { catalog, store, audit } = foundation;
  const { namespace, maxRuns, sandbox, queues } = config;
  const marking = { clock, log: log.child({ part: "claims" }) };
  const claims = openClaims(store.marks, session, marking);
  const ledger = new Ledger(clock);
  const cancels = new Cancels(clock, log);
  const answers = new Answers(session, log);
  const parts = {
    namespace,
    session,
    ledger,
    claims,
    cancels,
    maxRuns,
    invoker,
    clock,
    log,
    audit,
    answers,
    follow,
    topicTools: new TopicTools(namespace, log),
    largeRequests: new Semaphore({ capacity: maxParserThreads, maxWaiting: Infinity }),
    resolve: (tool: string) => catalog.resolve(tool),
    unavailable: (tool: string) => catalog.unavailable(tool),
  };
  const callLimits = { ...sandbox, maxQueued: sandbox.maxQueued * queues.size };
  const consumer = new Consumer(
    session,
    (delivery) => receiveDelivery(parts, delivery, signals),
    maxDeliveriesInFlight(callLimits, session.redelivers),
  );
  const cancelListener = new CancelListener({ session, namespace, cancels, clock, log });
  const dispose = async (): Promise<void> => {
    await cancelListener[Symbol.asyncDispose]();
    await claims[Symbol.asyncDispose]();
  };
  return { consumer, cancelListener, answers, [Symbol.asyncDispose]: dispose };
}
