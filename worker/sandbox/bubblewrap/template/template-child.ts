/**
 * A child of a template, from its connections to its end.
 */
import type { Socket } from "node:net";
import type { Duplex, Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { signalQuietly } from "../../proc/processes.ts";
import type { CapturedOutput } from "../../sandbox.ts";
import { OutputTail, type Subprocess, type SubprocessExit } from "../../subprocess.ts";
import type { ChildSockets } from "./template-listener.ts";

/** What it writes when it is let go on. */
const goLine = "go\n";

/** What is in the last line of a report. */
const lastWord = "exit-code";

/**
 * A child that has connected. For what watches a sandbox it is as a bubblewrap that was started by
 * this process.
 */
export class TemplateChild implements Subprocess {
  readonly pid: number;
  readonly channel: Socket;
  readonly report: Socket;
  readonly exited: Promise<SubprocessExit>;
  readonly closed: Promise<void>;
  readonly #sockets: ChildSockets;
  readonly stdin = undefined;
  readonly #stdout: OutputTail;
  readonly #stderr: OutputTail;

  /** @param firstPid its first process, as this host numbers it */
  constructor(sockets: ChildSockets, firstPid: number) {
    const { report, wake, out, err } = sockets;
    this.#sockets = sockets;
    this.pid = firstPid;
    this.channel = wake;
    this.report = report;
    this.#stdout = new OutputTail(out);
    this.#stderr = new OutputTail(err);
    const hasSaidAll = Promise.withResolvers<void>();
    // Nothing comes behind it, and its end comes only with that of the process.
    const ended = Promise.race([closeOf(report), hasSaidAll.promise]);
    // Who does not report how the command ended was killed.
    this.exited = ended.then(() => ({ exitCode: undefined, signal: "SIGKILL" }));
    this.closed = ended.then(() => Promise.race([allClosed([out, err]), whatIsThereIsRead()]));
    report.on("data", (chunk: Buffer) => {
      if (chunk.includes(lastWord)) hasSaidAll.resolve();
    });
    // As a bubblewrap reports it, which makes the process itself.
    report.unshift(`${JSON.stringify({ "child-pid": firstPid })}\n`);
  }

  /** Lets it go on, once its limits are kept and somebody reads what it reports. */
  letGo(): void {
    const { report, out, err } = this.#sockets;
    for (const socket of [report, out, err]) socket.resume();
    this.report.write(goLine);
  }

  get socket(): Duplex | undefined {
    return this.#sockets.gateway;
  }

  get stdout(): Readable {
    return this.#stdout.stream;
  }

  get stderr(): Readable {
    return this.#stderr.stream;
  }

  output(): { readonly stdout: CapturedOutput; readonly stderr: CapturedOutput } {
    return { stdout: this.#stdout.read(), stderr: this.#stderr.read() };
  }

  kill(signal: NodeJS.Signals): void {
    signalQuietly(this.pid, signal);
  }

  close(): void {
    for (const socket of Object.values(this.#sockets)) socket.destroy();
  }
}

/**
 * Never rejects, as `once` of node:events would: the end of a child that has not read everything is
 * an error of its socket.
 */
async function allClosed(sockets: readonly Socket[]): Promise<void> {
  await Promise.all(sockets.map(closeOf));
}

/**
 * What was written is there at once, and is read in the next turn; the sockets may stay open until
 * memory is given back.
 */
async function whatIsThereIsRead(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

async function closeOf(socket: Socket): Promise<void> {
  if (socket.closed) return;
  await new Promise<void>((resolve) => socket.once("close", () => resolve()));
}
