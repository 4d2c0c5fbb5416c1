/**
 * A DevBroker inside a command, and what can be said of the clients it saw.
 */
import { CommandError } from "../context.ts";
import { defaultPort } from "../options/defaults.ts";
import { type ClientSubscriptions, type DevBroker, startDevBroker } from "./dev-broker.ts";
import { reachable } from "../worker/worker-command.ts";

/** Clients that are remembered after they have gone. */
const maxRememberedClients = 100;
/** Patterns of one client that are shown. */
const maxShownPatterns = 20;

/** A DevBroker that remembers who subscribed. Its owner disposes it. */
export interface EmbeddedBroker extends AsyncDisposable {
  readonly broker: DevBroker;
  /** What every client subscribed to when it was heard of last, gone ones included. */
  seen(): readonly ClientSubscriptions[];
}

/** Starts it. Throws as `listen` does. */
export async function startEmbeddedBroker(host: string, port: number): Promise<EmbeddedBroker> {
  const broker = await listen(host, port);
  const seen = new Map<string | null, ClientSubscriptions>();
  broker.events.on("subscribed", (client) => {
    if (client.patterns.length === 0) return;
    if (seen.size < maxRememberedClients || seen.has(client.clientId)) {
      seen.set(client.clientId, client);
    }
  });
  return {
    broker,
    seen: () => [...seen.values()],
    [Symbol.asyncDispose]: () => broker[Symbol.asyncDispose](),
  };
}

/**
 * A DevBroker on `host` and `port`. Throws PortTakenError, and CommandError when it cannot listen
 * there otherwise.
 */
export async function listen(host: string, port: number): Promise<DevBroker> {
  try {
    return await startDevBroker({ host, port });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    if (code === "EADDRINUSE") throw new PortTakenError(host, port, { cause: error });
    throw new CommandError(`cannot listen on ${host}:${port}: ${code}`, { cause: error });
  }
}

/** Somebody listens there already. */
export class PortTakenError extends CommandError {
  constructor(host: string, port: number, options?: { cause?: unknown }) {
    const there = port === defaultPort ? reachable(host) : `${reachable(host)}:${port}`;
    super(
      `cannot listen on ${host}:${port}: EADDRINUSE; --port 0 takes a free one. If a DevBroker runs there: harness invoke --broker ${there}`,
      options,
    );
    this.name = "PortTakenError";
  }
}

/**
 * Why what was published to a topic may have reached nobody, told from the subscriptions that a
 * broker saw.
 */
export function explainSilence(topic: string, seen: readonly ClientSubscriptions[]): string {
  if (seen.length === 0) return "No client subscribed to anything.";
  const shown = seen.flatMap(({ clientId, patterns }) => [
    `  ${clientId ?? "(without an id)"}`,
    ...patterns.slice(0, maxShownPatterns).map((pattern) => `    ${pattern}`),
    ...(patterns.length > maxShownPatterns
      ? [`    and ${patterns.length - maxShownPatterns} more`]
      : []),
  ]);
  const patterns = seen.flatMap((client) => client.patterns);
  return ["Subscriptions that this broker saw:", ...shown, ...guesses(topic, patterns)].join("\n");
}

/** The two usual mistakes: another namespace, another manifest. */
function guesses(topic: string, patterns: readonly string[]): readonly string[] {
  if (patterns.includes(topic)) return [];
  const called = parse(topic);
  const served = patterns.map(parse);
  const namespaces = served
    .filter(({ namespace, tool }) => tool === called.tool && namespace !== called.namespace)
    .map(({ namespace }) => namespace);
  const tools = served
    .filter(({ namespace, tool }) => namespace === called.namespace && tool !== "")
    .map(({ tool }) => tool);
  return [
    ...[...new Set(namespaces)].map(
      (namespace) =>
        `A worker serves ${called.tool} in namespace "${namespace}", and this call was for "${called.namespace}": SAM_NAMESPACE must be the same on both sides.`,
    ),
    ...(tools.length > 0
      ? [
          `The worker's manifest has no ${called.tool}; it serves ${[...new Set(tools)].join(", ")}.`,
        ]
      : []),
  ];
}

/** Namespace and tool of an invoke topic; both empty when it is another one. */
function parse(topic: string): { readonly namespace: string; readonly tool: string } {
  const match = /^(?<namespace>.+)\/a2a\/v1\/sam_remote_tool\/invoke\/(?<tool>[^/]+)$/.exec(topic);
  return { namespace: match?.groups?.["namespace"] ?? "", tool: match?.groups?.["tool"] ?? "" };
}
