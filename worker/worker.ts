/**
 * The worker's life: start, run, drain, stop.
 */
import { StoreWatch } from "./artifacts/store-watch.ts";
import type { BrokerSession } from "./broker/broker.ts";
import type { ReconnectingBroker, ReconnectingSession } from "./broker/reconnecting.ts";
import type { Config } from "./config/config.ts";
import type { Described } from "./discovery/described-tools.ts";
import type { ToolEnvironments } from "./environments/tool-environments.ts";
import type { GroupWatch } from "./group/group-watch.ts";
import type { Consumer, DrainReport } from "./invocation/deliveries/consumer.ts";
import { followManifest, warmTools } from "./manifest-changes.ts";
import { type Manifest, type Runtime, queuesOfTools } from "./manifest/manifest.ts";
import type { Starts } from "./pool/starts.ts";
import { settlesWithin } from "./support/timeout.ts";
import type { AuditLog } from "./telemetry/audit/audit.ts";
import { logEvent } from "./telemetry/log-event.ts";
import type { Health } from "./telemetry/health.ts";
import type { Tracing } from "./telemetry/tracing/open.ts";
import { openWorkerBroker, startGroupWatch } from "./wiring/broker.ts";
import { wireConsumer, wireInvoker } from "./wiring/calls.ts";
import { openConsole } from "./wiring/console/open.ts";
import { openService } from "./wiring/runtime/service.ts";
import { startDiscovery, wireDescribedTools, wireRemoteTools } from "./wiring/discovery.ts";
import { type Foundation, openFoundation } from "./wiring/foundation.ts";
import { startHealth } from "./wiring/telemetry/health.ts";
import type { Host } from "./wiring/host.ts";
import { HostNetworkWarnings } from "./wiring/host-networks.ts";
import { WorkerMetrics } from "./wiring/telemetry/metrics.ts";
import { logAdvice, startupFacts } from "./wiring/startup-report.ts";
import { followedBy, startTracing } from "./wiring/telemetry/tracing.ts";

/** Milliseconds after the drain deadline for stopping tools and publishing their answers. */
const answerTimeoutMs = 10_000;
/** The same for an immediate stop: enough with a connection, too short to reconnect. */
const shutdownNowTimeoutMs = 1_000;
/** Milliseconds for the broker to stop delivering before the worker requeues running calls. */
const pauseTimeoutMs = 500;

/**
 * State of the worker.
 *
 * | state      | calls                                                                      |
 * |------------|----------------------------------------------------------------------------|
 * | `idle`     | nothing is open                                                            |
 * | `starting` | parts are being opened; nothing is subscribed                              |
 * | `running`  | calls are taken and answered                                               |
 * | `draining` | no new call is taken; those taken are finished, or stopped at the deadline and answered or requeued |
 * | `stopped`  | everything is released                                                     |
 */
export type WorkerState = "idle" | "starting" | "running" | "draining" | "stopped";

/** Replace parts of the configuration. The owner keeps them. */
export interface WorkerParts {
  readonly broker?: ReconnectingBroker;
}

/** The owner starts it once, drains it once, and disposes it. */
export class Worker implements AsyncDisposable {
  readonly #config: Config;
  readonly #host: Host;
  readonly #given: WorkerParts;
  readonly #parts = new AsyncDisposableStack();
  /** Cancels calls without a slot. */
  readonly #stopWaiting = new AbortController();
  /** Cancels every call. */
  readonly #stopCalls = new AbortController();
  /** Stops publishing answers. */
  readonly #stopPublishing = new AbortController();
  readonly #ended = Promise.withResolvers<unknown>();
  #state: WorkerState = "idle";
  /** Whether the state has been `running`. */
  #hasStarted = false;
  #session: ReconnectingSession | undefined;
  #consumer: Consumer | undefined;
  #starts: Starts | undefined;
  #groupWatch: GroupWatch | undefined;
  #storeWatch: StoreWatch | undefined;
  readonly #health: Pick<Health, "missing" | "warnings"> = {
    missing: () => this.#missing(),
    warnings: () => this.#warnings(),
  };
  readonly #metrics: WorkerMetrics;
  #tracing: Tracing | undefined;
  #audit: AuditLog | undefined;
  #environments: ToolEnvironments | undefined;
  #healthPort: number | undefined;

  constructor(config: Config, host: Host, parts: WorkerParts = {}) {
    this.#config = config;
    this.#host = host;
    this.#given = parts;
    this.#metrics = this.#parts.use(new WorkerMetrics(config, host, this.#health));
  }

  get state(): WorkerState {
    return this.#state;
  }

  /** Port of the health server, if any. */
  get healthPort(): number | undefined {
    return this.#healthPort;
  }

  /** The pool of sandboxes; undefined before the start. */
  get starts(): Starts | undefined {
    return this.#starts;
  }

  /** Resolves with the cause when the broker is lost for good or a loop fails. */
  get failed(): Promise<unknown> {
    return this.#ended.promise;
  }

  /**
   * Opens all parts in order and receives calls, or closes all. Throws ConfigError, ProfilesError,
   * SandboxError, StoreError, ManifestError, BrokerError, or the signal's reason.
   */
  async start(signal: AbortSignal): Promise<void> {
    this.#state = "starting";
    try {
      await this.#startHealth();
      const giveUp = this.#stopPublishing.signal;
      this.#tracing = this.#parts.use(startTracing(this.#config, this.#host, giveUp));
      const foundation = this.#parts.use(await openFoundation(this.#config, this.#host, signal));
      this.#audit = foundation.audit;
      this.#environments = foundation.environments;
      if (foundation.store.kind === "memory") {
        logEvent(this.#host.log, "artifacts.in_memory");
      }
      await this.#connect(foundation, signal);
      this.#parts.use(await openService(this.#config, this.#host, signal));
      this.#state = "running";
      this.#hasStarted = true;
      logAdvice(this.#config, this.#host, foundation);
      logEvent(this.#host.log, "worker.ready", startupFacts(this.#config, foundation));
      warmTools(foundation);
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  /**
   * Stops intake, waits for running calls until the deadline, then cancels the rest. Cancels calls
   * without a slot immediately where the broker redelivers.
   */
  async drain(deadlineMs: number): Promise<DrainReport> {
    this.#state = "draining";
    this.#starts?.drain();
    const [consumer, session] = [this.#consumer, this.#session];
    if (consumer === undefined || session === undefined) {
      return { finished: 0, requeued: 0, abandoned: 0 };
    }
    // After the pause, so that requeued calls reach another session.
    if (session.redelivers)
      void session.pause().then(() => this.#stopWaiting.abort(shutdownError()));
    const report = await consumer.drain(AbortSignal.timeout(deadlineMs));
    await this.#stopRunning(consumer, session);
    return report;
  }

  /** Shortens the time for publishing answers. Dispose the worker afterwards. */
  shutdownNow(): void {
    const giveUp = (): void =>
      this.#stopPublishing.abort(new Error("the worker was stopped at once"));
    setTimeout(giveUp, shutdownNowTimeoutMs).unref();
  }

  /** Cancels all calls and closes all parts in reverse order of opening. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#state === "stopped") return;
    this.#state = "stopped";
    const [consumer, session] = [this.#consumer, this.#session];
    if (consumer !== undefined && session !== undefined) {
      if (session.redelivers) await consumer.drain(AbortSignal.abort());
      await this.#stopRunning(consumer, session);
    }
    await this.#parts.disposeAsync();
  }

  async #stopRunning(consumer: Consumer, session: BrokerSession): Promise<void> {
    const giveUp = setTimeout(() => this.#stopPublishing.abort(shutdownError()), answerTimeoutMs);
    // An unpaused session would receive the requeued calls again and again.
    if (session.redelivers) await settlesWithin(session.pause(), pauseTimeoutMs, this.#host.clock);
    this.#stopWaiting.abort(shutdownError());
    this.#stopCalls.abort(shutdownError());
    await consumer.settled(this.#stopPublishing.signal);
    clearTimeout(giveUp);
  }

  async #startHealth(): Promise<void> {
    const server = await startHealth(this.#config, {
      ...this.#health,
      packages: () => this.#environments?.counts,
      hasStarted: () => this.#hasStarted,
      metrics: this.#metrics.page,
    });
    this.#healthPort = this.#parts.use(server)?.port;
  }

  /** Reasons why the worker is not ready. */
  #missing(): readonly string[] {
    const missing: string[] = [];
    if (this.#state !== "running") missing.push(`worker is ${this.#state}`);
    if (this.#session?.connected !== true) missing.push("no broker connection");
    missing.push(...(this.#session?.notReadyReasons ?? []));
    missing.push(...(this.#audit?.notReadyReasons ?? []));
    return missing;
  }

  /** What an operator should mend. */
  #warnings(): readonly string[] {
    return [
      ...(this.#groupWatch?.conflicts ?? []),
      ...(this.#storeWatch?.problems ?? []),
      ...(this.#environments?.warnings ?? []),
      ...(this.#audit?.warnings ?? []),
    ];
  }

  async #connect(foundation: Foundation, signal: AbortSignal): Promise<void> {
    const [config, host] = [this.#config, this.#host];
    const { clock } = host;
    const { catalog, store } = foundation;
    const watched = { store, clock, log: host.log.child({ part: "artifacts" }) };
    this.#storeWatch = this.#parts.use(new StoreWatch(watched));
    const broker = this.#given.broker ?? (await openWorkerBroker(config, host, catalog));
    const tools = queuesOfTools(catalog.manifest);
    const session = this.#parts.use(await broker.connect([...tools.keys()], signal));
    this.#session = session;

    const described = this.#parts.use(wireDescribedTools(config, host, foundation));
    const metrics = this.#metrics;
    metrics.serve(catalog.manifest);
    const { egress, store: storeCounts } = metrics;
    const console = await openConsole(config, host);
    const follow = followedBy(metrics.calls, this.#tracing, console);
    const remote = this.#parts.use(wireRemoteTools(config, host, session));
    remote.follow(catalog.manifest);
    const parts = { described, egress, storeCounts, follow, remote };
    const wired = wireInvoker(config, host, foundation, parts);
    const { invoker, starts, slots, lentSlots } = wired;
    const checker = this.#parts.use(wired.checker);
    const onDescribed = ({ description }: Described): void => {
      if (description.parameters !== undefined) checker.warm();
    };
    this.#parts.use(described.onDescribed(onDescribed));
    const onCodeChanged = (runtime: Runtime): void => described.codeChanged(runtime);
    this.#parts.use(foundation.codeWatch.onChange(onCodeChanged));
    described.follow(catalog.manifest.tools.values());
    this.#starts = this.#parts.use(starts);
    const signals = {
      wait: this.#stopWaiting.signal,
      run: this.#stopCalls.signal,
      publish: this.#stopPublishing.signal,
    };
    const consumed = console?.joined(session) ?? session;
    const { consumer, cancelListener, answers } = this.#parts.use(
      wireConsumer(config, { host, foundation, session: consumed, invoker, signals, follow }),
    );
    metrics.follow({
      ...{ foundation, session, slots, lentSlots, starts, tracing: this.#tracing },
      unroutable: () => answers.unroutable,
      conflicts: () => this.#groupWatch?.conflicts.length ?? 0,
    });
    const shown = { foundation, described, slots, starts, health: this.#health };
    if (console !== undefined) await this.#parts.use(console).start(shown);
    await cancelListener.start(signal);
    this.#consumer = consumer;
    this.#supervise(consumer.run());
    starts.follow(catalog.manifest.tools.values());
    const hostNetworks = new HostNetworkWarnings(config.sandbox, foundation.profiles, host.log);
    hostNetworks.follow(catalog.manifest);
    if (session.redelivers) {
      this.#groupWatch = this.#parts.use(startGroupWatch(config, host, foundation, session));
    }
    const discovery = startDiscovery(config, host, foundation, session, described);
    this.#parts.use(discovery);
    const onManifest = (manifest: Manifest): void => {
      starts.follow(manifest.tools.values());
      remote.follow(manifest);
      metrics.serve(manifest);
      hostNetworks.follow(manifest);
    };
    const followers = { foundation, session, onManifest, described, discovery };
    this.#supervise(followManifest(followers, tools, host, this.#stopPublishing.signal));
    void session.closed.then((end) => {
      if (end.reason === "lost") this.#ended.resolve(end.cause);
    });
  }

  /** A failed loop ends the worker, which could no longer answer. */
  #supervise(loop: Promise<void>): void {
    loop.catch((error: unknown) => {
      if (this.#state === "running") this.#ended.resolve(error);
    });
  }
}

/** Reason of cancelled calls; answers have another message. */
function shutdownError(): Error {
  return new Error("the worker is shutting down");
}
