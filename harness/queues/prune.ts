/**
 * `harness queues prune`: which queues of a namespace nobody serves any more, and away with them.
 */
import { queuePrefix, toolQueue } from "../../worker/protocol/queue-names.ts";
import { readSecretFiles } from "../../worker/secret-files.ts";
import { type Context, UsageError, exit } from "../context.ts";
import { printable } from "../screen.ts";
import { callsIn, waitForQuiet } from "./quiet.ts";
import { type QueueTraffic, type QueueUse, Semp } from "./semp.ts";

/** The command line. */
export interface PruneOptions {
  readonly namespace: string;
  /** Those whose queues it is about; empty for all queues of the namespace. */
  readonly tool: readonly string[];
  /** Removes; otherwise only says what it would. */
  readonly yes?: boolean;
  /** Seconds for which nobody may have used a queue that is removed. */
  readonly after: number;
  /** Removes what is in use too. */
  readonly force?: boolean;
  /** Removes also what a worker may have let go because of the calls that it runs. */
  readonly whileCallsRun?: boolean;
  readonly json?: boolean;
}

/** What became of a queue, or would have. */
interface Verdict {
  readonly name: string;
  readonly consumers: number | null;
  readonly messages: number | null;
  readonly fate: "kept" | "removable" | "removed";
  readonly reason: string;
}

/** Names of the variables that say where SEMP is and who may use it. */
const variables = {
  url: "SOLACE_SEMP_URL",
  username: "SOLACE_SEMP_USERNAME",
  password: "SOLACE_SEMP_PASSWORD",
  vpn: "SOLACE_VPN",
} as const;

/** Why a queue stays that is not used, while calls of others run. */
const mayBeParked = "calls run, and a full worker may have let it go";

/**
 * Lists the queues, and removes what may go: those that are not used, and were not used either between a look at all of them
 * and a second one, if there was a time between in which no call of the namespace ran. Throws UsageError, CommandError, or the
 * signal's reason.
 */
export async function prune(options: PruneOptions, context: Context): Promise<number> {
  checkTools(options);
  const semp = connect(context);
  const { signal } = context;
  const look = (): Promise<QueueTraffic[]> => semp.traffic(queuePrefix(options.namespace), signal);
  const uses: QueueUse[] = [];
  for (const name of await namesOf(options, look)) {
    const use = await semp.use(name, signal);
    if (use !== undefined) uses.push(use);
  }
  // Only now: a queue that is let go after this look at its use is one that somebody asked for since.
  const calls = await callsMeanwhile(uses, look, options, context);
  const verdicts: Verdict[] = [];
  for (const use of uses) {
    const verdict = await judge(use, calls === undefined, options, semp, signal);
    if (verdict === undefined) continue;
    verdicts.push(verdict);
    show(verdict, options, context);
  }
  return sumUp(verdicts, calls, options, context);
}

function checkTools({ force = false, whileCallsRun = false, tool }: PruneOptions): void {
  if (tool.length > 0) return;
  if (force) {
    throw new UsageError(
      "--force needs --tool: it removes calls that wait, and queues that are served",
    );
  }
  if (whileCallsRun) {
    throw new UsageError(
      "--while-calls-run needs --tool: it removes queues that a full worker has let go for a while",
    );
  }
}

/**
 * Waits for the second look, if there is to be one. The queues whose calls ran all the while, or run now if it does not wait;
 * undefined where they do not matter.
 */
async function callsMeanwhile(
  uses: readonly QueueUse[],
  look: () => Promise<readonly QueueTraffic[]>,
  { yes = false, force = false, whileCallsRun = false, after }: PruneOptions,
  context: Context,
): Promise<string | undefined> {
  const idle = uses.filter((use) => obstacleOf(use) === undefined).length;
  if (force || idle === 0) return undefined;
  if (!yes) return whileCallsRun ? undefined : callsIn(await look());
  context.err.line(`not used: ${idle}; looking again in ${after} seconds`);
  if (!whileCallsRun) return waitForQuiet(after, look, context);
  await context.clock.sleep(after * 1000, context.signal);
  return undefined;
}

/** Removes a queue if it may go, by the look at it before and one more; undefined when somebody else has removed it. */
async function judge(
  before: QueueUse,
  wasQuiet: boolean,
  { yes = false, force = false }: PruneOptions,
  semp: Semp,
  signal: AbortSignal,
): Promise<Verdict | undefined> {
  const obstacle = force ? undefined : obstacleOf(before);
  if (obstacle !== undefined) return toVerdict(before, "kept", obstacle);
  const reason = before.consumers === 0 ? "nobody serves it" : "forced";
  const doubt = wasQuiet ? undefined : mayBeParked;
  if (!yes) return toVerdict(before, doubt === undefined ? "removable" : "kept", doubt ?? reason);
  if (!force) {
    // At the last moment: a worker may come while others are looked at.
    const now = await semp.use(before.name, signal);
    if (now === undefined) return undefined;
    const news = obstacleOf(now) ?? useBetween(before, now) ?? doubt;
    if (news !== undefined) return toVerdict(now, "kept", news);
  }
  const wasThere = await semp.remove(before.name, signal);
  return wasThere ? toVerdict(before, "removed", reason) : undefined;
}

async function namesOf(
  { namespace, tool }: PruneOptions,
  look: () => Promise<readonly QueueTraffic[]>,
): Promise<readonly string[]> {
  if (tool.length > 0) return tool.map((name) => toolQueue(namespace, name));
  return (await look()).map(({ name }) => name).toSorted();
}

/** Why a queue must stay, by one look; undefined when it may go. */
function obstacleOf(use: QueueUse): string | undefined {
  const { consumers, messages, spooled, bindRequests } = use;
  if ([consumers, messages, spooled, bindRequests].includes(undefined)) {
    return "its use is unknown";
  }
  if (consumers !== 0) return "it is served";
  return messages !== 0 ? "calls wait in it" : undefined;
}

/** How a queue was used that neither look found in use; undefined when it was not. */
function useBetween(before: QueueUse, now: QueueUse): string | undefined {
  // Not only more: a queue that was removed and made again counts from the beginning.
  if (now.bindRequests !== before.bindRequests) return "somebody asked to serve it meanwhile";
  return now.spooled === before.spooled ? undefined : "calls came meanwhile";
}

/** Says how many queues there were, and what to do where calls ran. Returns the exit code. */
function sumUp(
  verdicts: readonly Verdict[],
  calls: string | undefined,
  { yes = false }: PruneOptions,
  { err }: Context,
): number {
  const removable = verdicts.filter(({ fate }) => fate === "removable").length;
  const removed = verdicts.filter(({ fate }) => fate === "removed").length;
  err.line(
    `${verdicts.length} queues, ${removed} removed${removable > 0 ? `, ${removable} would be by --yes` : ""}`,
  );
  if (!verdicts.some(({ reason }) => reason === mayBeParked)) return exit.success;
  err.line(`nothing ${yes ? "is" : "would be"} removed, since calls run: ${calls}`);
  err.line(
    "Run this again when they have ended, or with a longer --after. For a tool that no worker serves there is --tool NAME --while-calls-run.",
  );
  return yes ? exit.timedOut : exit.success;
}

function toVerdict(use: QueueUse, fate: Verdict["fate"], reason: string): Verdict {
  const { name, consumers = null, messages = null } = use;
  return { name, consumers, messages, fate, reason };
}

function show(verdict: Verdict, { json = false }: PruneOptions, { out }: Context): void {
  const { name, consumers, messages, fate, reason } = verdict;
  const text = json
    ? JSON.stringify(verdict)
    : `${fate.padEnd(9)} ${name}: ${reason} (consumers: ${consumers ?? "?"}, messages: ${messages ?? "?"})`;
  out.line(printable(text));
}

function connect({ environment: given, err }: Context): Semp {
  const { environment, problems } = readSecretFiles(given, [variables.password]);
  if (problems.length > 0) throw new UsageError(problems.join("\n"));
  const [text, username, password] = [variables.url, variables.username, variables.password].map(
    (name) => environment[name] || undefined,
  );
  if (text === undefined || username === undefined || password === undefined) {
    throw new UsageError(
      `${variables.url}, ${variables.username} and ${variables.password} have to say where the broker is managed, and by whom`,
    );
  }
  const url = URL.parse(text);
  // What is refused may hold a password, and is not repeated.
  if (
    url === null ||
    !/^https?:$/.test(url.protocol) ||
    url.username !== "" ||
    url.password !== ""
  ) {
    throw new UsageError(
      `${variables.url} is not accepted; accepted: https://HOST:PORT or http://HOST:PORT, without user and password`,
    );
  }
  if (url.protocol === "http:") {
    err.line(
      `${url.origin} is not encrypted: the password of ${printable(username)} can be read on its way`,
    );
  }
  return new Semp({ url, username, password, vpn: environment[variables.vpn] || "default" });
}
