/**
 * Wires tracing, and what follows calls.
 */
import type { Config } from "../../config/config.ts";
import { type CallFollower, type ReceivedCall, followAll } from "../../telemetry/call-follower.ts";
import type { CallCounts } from "../../telemetry/metrics/call-counts.ts";
import { type Tracing, openTracing } from "../../telemetry/tracing/open.ts";
import type { WorkerConsole } from "../console/console.ts";
import type { Host } from "../host.ts";

/** Brokers as OpenTelemetry's conventions for messaging name them. */
const messagingSystems = { amqp: "rabbitmq", solace: "solace", dev: "devbroker" } as const;

/**
 * Undefined where no collector of traces is configured.
 *
 * @param giveUp ends the last export early
 */
export function startTracing(
  { tracing, broker, workerId, group, namespace }: Config,
  { clock, log }: Pick<Host, "clock" | "log">,
  giveUp: AbortSignal,
): Tracing | undefined {
  if (tracing === undefined) return undefined;
  const messagingSystem = messagingSystems[broker.kind];
  const resource = {
    "service.name": "secure-tool-runtime",
    "service.instance.id": workerId,
    "str.namespace": namespace,
    "str.group": group,
  };
  const parts = { clock, log: log.child({ part: "tracing" }), giveUp };
  return openTracing(tracing, { messagingSystem, resource }, parts);
}

/** Follows a delivery by metrics, and by trace and console where there are any. */
export function followedBy(
  counts: CallCounts,
  tracing: Tracing | undefined,
  console: WorkerConsole | undefined,
): (received: ReceivedCall) => CallFollower {
  if (tracing === undefined && console === undefined)
    return ({ isNested }) => counts.follow(undefined, isNested);
  return (received) => {
    const traced = tracing?.follow(received);
    const trace = traced?.trace;
    const counted = counts.follow(trace, received.isNested);
    const followers = [counted, traced, console?.follow(received, trace)];
    return followAll(followers.filter((follower) => follower !== undefined));
  };
}
