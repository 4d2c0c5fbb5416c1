/**
 * Opens the networks of sandboxes that may reach some hosts.
 */
import type { Config } from "../config/config.ts";
import { ownPaths } from "../config/secret-files.ts";
import type { ToolEntry } from "../manifest/manifest.ts";
import { isPublicOnly } from "../protocol/network-meet.ts";
import type { Network } from "../protocol/network-rules.ts";
import { type Refusal, publicRefusal } from "../protocol/refusal.ts";
import {
  type CheckName,
  type HostCheck,
  describeUnmet,
  unmetChecks,
} from "../sandbox/host-check.ts";
import { type Profile, type Profiles, restrictiveProfile } from "../sandbox/profile.ts";
import { isolates } from "../sandbox/registry.ts";
import { type SandboxBackend, SandboxError } from "../sandbox/sandbox.ts";
import { abortable } from "../support/timeout.ts";
import { type EventLog, logEvent } from "../telemetry/log-event.ts";
import {
  type LookUp,
  type WorkerEndpoint,
  WorkerEndpoints,
  lookUpByHost,
} from "../egress/resolve.ts";
import { keptFor } from "../egress/resolve-cache.ts";
import { CredentialSources } from "../egress/edge/credential-sources.ts";
import { Egress } from "../egress/fabric.ts";
import type { Host } from "./host.ts";

/** Ports of the schemes of brokers and stores, for URLs without one. */
const defaultPorts: Readonly<Record<string, number>> = {
  "amqp:": 5672,
  "amqps:": 5671,
  "http:": 80,
  "https:": 443,
  "tcp:": 55_555,
  "tcps:": 55_443,
  "ws:": 80,
  "wss:": 443,
};

/** All tools share one trial, so no tool's signal ends it. */
const never = AbortSignal.any([]);

/** Milliseconds for the trial of a sandbox with a network. */
const trialMs = 30_000;

/** The operator's remedy for a failed trial. */
const remedy =
  "a kernel and a container that let the user of sandboxes use setns(2), as deploy/seccomp.json does, and SANDBOX_PYTHON_BIN 3.9 or later";

/** What serves a tool whose network is the default, where the trial fails. */
const waysOut = "network: none in its manifest entry, or SANDBOX_DEFAULT_NETWORK=host";

/** Parts of {@link NetworkAdmission}. */
export interface NetworkParts {
  readonly egress: Egress;
  readonly backend: Pick<SandboxBackend, "acquire">;
  readonly profiles: Profiles;
  readonly defaultProfile: string;
  /** What the network `host` stands for. */
  readonly hostNetwork: Network;
  readonly log: EventLog<"warn">;
  /** Runs the trial, unless its result is known. */
  readonly tryOnce?: ((trial: () => Promise<void>) => Promise<void>) | undefined;
}

/** Refuses tools whose lists this host cannot keep: by their backend, or after a trial. */
export class NetworkAdmission {
  readonly #parts: NetworkParts;
  /** The trial that has succeeded, or runs. */
  #trial: Promise<void> | undefined;

  constructor(parts: NetworkParts) {
    this.#parts = parts;
  }

  /** Undefined for a tool that can be served. Rejects with the signal's reason. */
  async refuse(tool: ToolEntry, signal: AbortSignal): Promise<Refusal | undefined> {
    const { log } = this.#parts;
    const profile = profileOf(tool, this.#parts);
    const network = networkOf(tool, this.#parts);
    if (profile === undefined || typeof network === "string") return undefined;
    if (!isolates(profile))
      return publicRefusal(`the backend ${profile.backend} cannot keep a tool to some hosts`);
    try {
      this.#trial ??= this.#try();
      await abortable(this.#trial, signal);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      this.#trial = undefined;
      logEvent(log, "sandbox.network_missing", { err: error, remedy });
      const publicReason = "this host cannot keep a tool to some hosts";
      const isDefault = tool.network === undefined && isPublicOnly(profile.network);
      const or = isDefault ? `, or ${waysOut}` : "";
      return { reason: `${publicReason}; it takes ${remedy}${or}`, publicReason };
    }
  }

  #try(): Promise<void> {
    const trial = (): Promise<void> => tryNetwork(this.#parts, never);
    return this.#parts.tryOnce?.(trial) ?? trial();
  }
}

/** What a trial needs. */
export type NetworkTrialParts = Pick<NetworkParts, "egress" | "backend">;

/** The check `egress`. Rejects with the signal's reason. */
export async function checkEgress(
  parts: NetworkTrialParts | undefined,
  earlier: readonly HostCheck[],
  signal: AbortSignal,
): Promise<HostCheck> {
  const name = "egress";
  const namespaces = earlier.find((check) => check.name === "network-namespace");
  if (parts === undefined || namespaces?.state !== "held") {
    const finding = "not tried, since sandboxes have no network namespace of their own";
    return { name, state: "missing", finding, remedy: undefined };
  }
  try {
    await tryNetwork(parts, signal);
  } catch (error) {
    signal.throwIfAborted();
    const reason = rootMessage(error);
    const finding = `no sockets of the worker in a sandbox: ${reason}`;
    return { name, state: "missing", finding, remedy };
  }
  const finding = "a sandbox waited for sockets of the worker in its network namespace";
  return { name, state: "held", finding, remedy: undefined };
}

/** The innermost cause of a failed network, such as a refused system call. */
function rootMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // The innermost one may have no words.
  return (error.cause instanceof Error && rootMessage(error.cause)) || error.message;
}

/** Throws SandboxError where the minimum asks for `egress`, and this host does not hold it. */
export async function requireEgress(
  minimum: readonly CheckName[],
  check: () => Promise<HostCheck>,
): Promise<void> {
  if (!minimum.includes("egress")) return;
  const unmet = unmetChecks([await check()], minimum);
  if (unmet.length > 0) throw new SandboxError(describeUnmet(unmet), { setting: "minimum" });
}

/**
 * Makes a sandbox with a network that leads nowhere. Throws SandboxError; the reason of the signal
 * or of the time limit.
 */
async function tryNetwork(
  { egress, backend }: NetworkTrialParts,
  signal: AbortSignal,
): Promise<void> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(trialMs)]);
  const profile: Profile = { ...restrictiveProfile, network: { lists: [[]], maxConnections: 1 } };
  const nothing = { mounts: [], devices: [], environment: new Map<string, string>() };
  const network = await egress.networkOf(profile);
  const request = { profile, memoryBound: "address-space", network, ...nothing } as const;
  await using sandbox = await backend.acquire(request, bounded);
  const execution = await abortable(sandbox.start({ argv: ["/usr/bin/true"] }), bounded);
  const { started, stderr } = await abortable(execution.exited, bounded);
  if (!started) throw new SandboxError(stderr.text.trim());
}

/** What decides the network of a tool. */
type NetworkChoice = Pick<NetworkParts, "profiles" | "defaultProfile" | "hostNetwork">;

/** The manifest names profiles that exist only. */
function profileOf(
  tool: ToolEntry,
  { profiles, defaultProfile }: NetworkChoice,
): Profile | undefined {
  return profiles.get(tool.profile ?? defaultProfile);
}

/** What the tool has, or a part of it: whether that is a list is the same. */
function networkOf(tool: ToolEntry, choice: NetworkChoice): Network | undefined {
  const network = tool.network ?? profileOf(tool, choice)?.network;
  return network === "host" ? choice.hostNetwork : network;
}

/** Opens the networks of sandboxes. They need no disposal. */
export function openEgress(
  config: Config,
  host: Host,
  scratchDir: string,
  lookUp: LookUp = lookUpByHost,
): Promise<Egress> {
  const { clock } = host;
  const endpoints = new WorkerEndpoints(endpointsOf(config), clock);
  const resolve = keptFor(lookUp, clock);
  const onFailed = (err: Error): void => logEvent(host.log, "network.credential_unusable", { err });
  const ownFiles = ownPaths(host.environment);
  const credentials = { environment: host.environment, ownFiles, onFailed };
  return Egress.open({ scratchDir, resolve, endpoints, clock, credentials });
}

/** Where the operator lets credentials come from. */
export function createCredentialSources(config: Config, { environment }: Host): CredentialSources {
  const ownFiles = ownPaths(environment);
  return new CredentialSources({ allowed: config.sandbox.credentialSources, ownFiles });
}

/** The broker, the store and the worker's own listener. */
function endpointsOf({ broker, artifacts, healthPort }: Config): readonly WorkerEndpoint[] {
  const own = { host: "localhost", port: healthPort };
  const { store } = artifacts;
  const storeUrl = "endpoint" in store ? store.endpoint : undefined;
  return [
    own,
    // A broker speaks several protocols, each on its port.
    ...brokerEndpoints(broker).map((endpoint) => ({ ...endpoint, hasMorePorts: true })),
    ...(storeUrl === undefined ? [] : [endpointOf(storeUrl)]),
  ];
}

function brokerEndpoints(broker: Config["broker"]): readonly WorkerEndpoint[] {
  switch (broker.kind) {
    case "dev":
      return [{ host: broker.host, port: broker.port }];
    case "amqp":
      return [endpointOf(broker.url)];
    case "solace":
      return broker.host.split(",").map((url) => endpointOf(url.trim()));
  }
}

function endpointOf(url: string): WorkerEndpoint {
  const { protocol, hostname, port } = new URL(url.includes("://") ? url : `tcp://${url}`);
  const host = hostname.replace(/^\[|\]$/g, "");
  return { host, port: port === "" ? (defaultPorts[protocol] ?? 0) : Number(port) };
}
