/**
 * `harness queues prune`: which queues of a namespace nobody serves any more, and away with them.
 */
import { queuePrefix, toolQueue } from "../../worker/protocol/queue-names.ts";
import { type Context, UsageError, exit } from "../context.ts";
import { printable } from "../screen.ts";
import { type QueueUse, Semp } from "./semp.ts";

/** The command line. */
export interface PruneOptions {
  readonly namespace: string;
  /** Those whose queues it is about; empty for all queues of the namespace. */
  readonly tool: readonly string[];
  /** Removes; otherwise only says what it would. */
  readonly yes?: boolean;
  /** Removes what is in use too. */
  readonly force?: boolean;
  readonly json?: boolean;
}

/** What became of a queue, or would have. */
interface Verdict extends Omit<QueueUse, "consumers" | "messages"> {
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

/** Lists the queues, and removes what may go. Throws UsageError, CommandError, or the signal's reason. */
export async function prune(options: PruneOptions, context: Context): Promise<number> {
  const { yes = false, force = false } = options;
  if (force && options.tool.length === 0) {
    throw new UsageError(
      "--force needs --tool: it removes calls that wait, and queues that are served",
    );
  }
  const semp = connect(context);
  const { err, signal } = context;
  const verdicts: Verdict[] = [];
  for (const name of await namesOf(options, semp, context)) {
    // Asked at the last moment: a worker may come meanwhile.
    const use = await semp.use(name, signal);
    if (use === undefined) continue;
    const obstacle = force ? undefined : obstacleOf(use);
    const isGone = obstacle === undefined && yes && (await semp.remove(name, signal));
    const verdict = toVerdict(use, isGone, obstacle);
    verdicts.push(verdict);
    show(verdict, options, context);
  }
  const removable = verdicts.filter(({ fate }) => fate === "removable").length;
  const removed = verdicts.filter(({ fate }) => fate === "removed").length;
  err.line(
    `${verdicts.length} queues, ${removed} removed${removable > 0 ? `, ${removable} would be by --yes` : ""}`,
  );
  return exit.success;
}

async function namesOf(
  { namespace, tool }: PruneOptions,
  semp: Semp,
  { signal }: Context,
): Promise<readonly string[]> {
  if (tool.length > 0) return tool.map((name) => toolQueue(namespace, name));
  return (await semp.names(queuePrefix(namespace), signal)).toSorted();
}

/** Why a queue must stay; undefined when it may go. */
function obstacleOf({ consumers, messages }: QueueUse): string | undefined {
  if (consumers === undefined || messages === undefined) return "its use is unknown";
  if (consumers > 0) return "it is served";
  return messages > 0 ? "calls wait in it" : undefined;
}

function toVerdict(use: QueueUse, isGone: boolean, obstacle: string | undefined): Verdict {
  const { name, consumers = null, messages = null } = use;
  const fate = isGone ? "removed" : obstacle === undefined ? "removable" : "kept";
  const reason = obstacle ?? (consumers === 0 ? "nobody serves it" : "forced");
  return { name, consumers, messages, fate, reason };
}

function show(verdict: Verdict, { json = false }: PruneOptions, { out }: Context): void {
  const { name, consumers, messages, fate, reason } = verdict;
  const text = json
    ? JSON.stringify(verdict)
    : `${fate.padEnd(9)} ${name}: ${reason} (consumers: ${consumers ?? "?"}, messages: ${messages ?? "?"})`;
  out.line(printable(text));
}

function connect({ environment, err }: Context): Semp {
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
