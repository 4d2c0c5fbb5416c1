/**
 * Wires the console of a worker: its calls among the session's, what follows all calls, its server.
 */
import { artifactScope } from "../../artifacts/scope.ts";
import type { ConsumedSession } from "../../broker/broker.ts";
import { type Config, ConfigError } from "../../config/config.ts";
import type { ConsoleConfig } from "../../config/servers/console-config.ts";
import type { CallView } from "../../console/api.ts";
import { LocalCalls } from "../../console/calls/local-session.ts";
import { OwnCalls, consoleCaller } from "../../console/calls/own-calls.ts";
import { RecentCalls } from "../../console/calls/recent-calls.ts";
import { Files } from "../../console/http/files.ts";
import { newToken } from "../../console/http/guard.ts";
import { type Page, readPage } from "../../console/http/page.ts";
import { startConsoleServer } from "../../console/http/server.ts";
import { Samples } from "../../console/samples.ts";
import { FreeDisk } from "../../invocation/slots/capacity.ts";
import type { PoolStats, Starts } from "../../pool/starts.ts";
import type { HostCheck } from "../../sandbox/host-check.ts";
import type { Semaphore } from "../../support/semaphore.ts";
import type { CallFollower, CallTrace, ReceivedCall } from "../../telemetry/call-follower.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import { type ViewParts, viewOf } from "./view.ts";
import type { Host } from "../host.ts";
import { consolePageDir } from "../shipped.ts";

/** Parts of a worker that the console shows. */
export interface ShownParts extends Omit<ViewParts, "config" | "startedAtMs" | "further"> {
  readonly slots: ReadonlyMap<string, Pick<Semaphore, "inUse" | "waiting">>;
  readonly starts: Pick<Starts, "stats">;
}

/** Opens in two steps: it follows calls before there is something to show. */
export class WorkerConsole implements AsyncDisposable {
  readonly #config: Config;
  readonly #options: ConsoleConfig;
  readonly #host: Host;
  readonly #local = new LocalCalls();
  readonly #own: OwnCalls;
  readonly #calls: RecentCalls;
  readonly #owned = new AsyncDisposableStack();
  readonly #closing = new AbortController();

  /** The caller disposes it before the foundation. */
  constructor(config: Config, options: ConsoleConfig, host: Host) {
    this.#config = config;
    this.#options = options;
    this.#host = host;
    this.#own = new OwnCalls(config.namespace, this.#local);
    this.#calls = new RecentCalls({
      clock: host.clock,
      keepsOutput: config.toolLogs.to !== "off",
      isOwn: (correlationId) => this.#own.isOpen(correlationId),
    });
  }

  /** The session with the console's own calls. */
  joined(session: ConsumedSession): ConsumedSession {
    return this.#local.joined(session);
  }

  /** Follows a delivery. */
  follow(received: ReceivedCall, trace: CallTrace | undefined): CallFollower {
    return this.#calls.follow(received, trace);
  }

  /** Listens. Throws ConfigError for an address that cannot be listened on. */
  async start({ slots, starts, ...shown }: ShownParts): Promise<void> {
    const { clock } = this.#host;
    const log = this.#host.log.child({ part: "console" });
    const { host, port, token = newToken() } = this.#options;
    const { foundation } = shown;
    const { scratchDir } = foundation.backend;
    const further: HostCheck[] = [];
    const startedAtMs = clock.nowMs();
    const view = () =>
      viewOf({ ...shown, config: this.#config, startedAtMs, further: [...further] });
    const samples = this.#owned.use(
      new Samples(() => gaugesOf(slots, starts.stats), this.#calls, clock),
    );
    const { sandbox, artifacts } = this.#config;
    const { scope, limits } = artifacts;
    const disk = new FreeDisk(scratchDir, clock);
    const files = new Files({
      store: foundation.store,
      scope: artifactScope(scope, consoleCaller),
      maxBytes: limits.maxBytes,
      scratchDir,
      freeBytes: async () => (await disk.bytes()) - sandbox.minFreeDiskBytes,
    });
    const onCancel = ({ tool, correlationId }: CallView): void =>
      logEvent(log, "console.cancelled", {
        tool: tool ?? undefined,
        correlationId: correlationId ?? undefined,
      });
    const onError = (error: unknown): void =>
      logEvent(log, "console.request_failed", { err: error });
    const page = await loadPage(scratchDir);
    const serves = (tool: string): boolean => foundation.catalog.resolve(tool) !== undefined;
    const parts = { page, view, serves, calls: this.#calls, own: this.#own, samples, files, clock };
    const server = await startConsoleServer(
      { host, port, token },
      { ...parts, onCancel, onError },
    ).catch((error: unknown) => {
      const problem = `"${host}:${port}" cannot be listened on: ${String(error)}`;
      throw new ConfigError([`CONSOLE_HOST, CONSOLE_PORT: ${problem}`]);
    });
    this.#owned.use(server);
    const secret = this.#options.token === undefined ? `#token=${token}` : "";
    const name = host.includes(":") ? `[${host}]` : host;
    logEvent(log, "console.listening", { url: `http://${name}:${server.port}/${secret}` });
    void foundation.checkEgress(this.#closing.signal).then(
      (check) => void further.push(check),
      () => undefined,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the console is closed"));
    await this.#owned.disposeAsync();
  }
}

/** Built and read once in a process. */
let page: Page | undefined;

async function loadPage(scratchDir: string): Promise<Page> {
  page ??= await readPage(await consolePageDir(scratchDir));
  return page;
}

function gaugesOf(
  slots: ReadonlyMap<string, Pick<Semaphore, "inUse" | "waiting">>,
  stats: readonly PoolStats[],
) {
  const ofSlots = [...slots.values()];
  return {
    running: sum(ofSlots, ({ inUse }) => inUse),
    waiting: sum(ofSlots, ({ waiting }) => waiting),
    idle: sum(stats, ({ idle }) => idle),
    idleWanted: sum(stats, ({ target }) => target),
    idleMemoryBytes: sum(stats, ({ privateBytes }) => privateBytes),
  };
}

function sum<Item>(items: readonly Item[], read: (item: Item) => number): number {
  return items.reduce((total, item) => total + read(item), 0);
}
