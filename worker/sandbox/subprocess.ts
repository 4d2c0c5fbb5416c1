/**
 * One child process: its output kept to a cap, its extra descriptors fed, its end reported once.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { type Duplex, PassThrough, type Readable, type Writable } from "node:stream";
import type { Clock } from "../support/clock.ts";
import { knownChildrenOf, signalQuietly } from "./proc/processes.ts";
import { readStat } from "./proc/stat.ts";
import { settlesWithin } from "../support/timeout.ts";
import type { CapturedOutput } from "./sandbox.ts";

/**
 * Bytes of stdout, and of stderr, that are kept of a child: the last ones; what is before is read
 * and dropped.
 */
export const maxOutputBytes = 64 * 1024;

/** Milliseconds that reading the rest of the output may take once nobody is left to write. */
const outputGraceMs = 250;

/**
 * Milliseconds that a child may take to stop; it takes some microseconds where it has a processor.
 */
const maxStopMs = 50;

/** The first descriptor behind stdin, stdout and stderr. */
export const firstInputFd = 3;

/** How a child ended. */
export interface SubprocessExit {
  readonly exitCode: number | undefined;
  readonly signal: NodeJS.Signals | undefined;
}

/** What to run. */
export interface SubprocessOptions {
  readonly file: string;
  readonly argv: readonly string[];
  /** The whole environment; nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  /** Current directory; `/` unless given. */
  readonly cwd?: string;
  /** Host uid and gid to run as, without supplementary groups; undefined keeps the worker's. */
  readonly uid?: number | undefined;
  /**
   * Whether descriptor 0 is a stream socket whose other end is `channel`; it is /dev/null
   * otherwise.
   */
  readonly hasChannel?: boolean;
  /** Whether descriptor 0 is a pipe that `stdin` writes to. Not together with `hasChannel`. */
  readonly hasStdin?: boolean;
  /** What the child reads on descriptors 3, 4, …, each ended after its content. */
  readonly inputs?: readonly (string | Uint8Array)[];
  /**
   * Told of the process and waited for before that can read any of `inputs`. When it rejects, the
   * process is killed and `startSubprocess` rejects the same way.
   */
  readonly beforeInputs?: (pid: number) => Promise<void>;
  /** Whether the descriptor after the inputs is a pipe that `hold` writes to. */
  readonly hasHold?: boolean;
  /** Whether the descriptor after these is a pipe that the child writes to. */
  readonly hasReport?: boolean;
  /**
   * A number behind all of these for a descriptor that is a stream socket, whose other end is
   * `socket`.
   */
  readonly socketFd?: number | undefined;
}

/** A running child. */
export interface Subprocess {
  readonly pid: number;
  /** Our end of the socket that is the child's descriptor 0, or undefined when it has none. */
  readonly channel: Duplex | undefined;
  /** Undefined when the child's descriptor 0 is no pipe. */
  readonly stdin: Writable | undefined;
  /** What a child reads before it goes on; undefined when it is not held. */
  readonly hold?: Writable | undefined;
  /** One stream for all readers, made at the first access; see {@link OutputTail.stream}. */
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** What the child writes to its report descriptor, or undefined when it has none. */
  readonly report: Readable | undefined;
  /** Paused; undefined without a `socketFd`. */
  readonly socket?: Duplex | undefined;
  /** Fulfils when the process has ended; its output may still be read by `output`. */
  readonly exited: Promise<SubprocessExit>;
  /** Fulfils when the process has ended and all its pipes are at their ends. */
  readonly closed: Promise<void>;
  /** The tails of stdout and stderr so far. */
  output(): { readonly stdout: CapturedOutput; readonly stderr: CapturedOutput };
  /** Sends a signal; harmless when the process is gone. */
  kill(signal: NodeJS.Signals): void;
  /**
   * Closes our ends of the pipes, also when something that outlived the child still holds theirs.
   */
  close(): void;
}

/**
 * Starts a child in a session of its own, so that a terminal's Ctrl-C reaches the worker alone.
 * Rejects with the system's error when the program cannot be started. The caller owns the child and
 * calls `close`.
 */
export async function startSubprocess(options: SubprocessOptions): Promise<Subprocess> {
  const inputs = options.inputs ?? [];
  const holdFd = firstInputFd + inputs.length;
  const reportFd = holdFd + Number(options.hasHold ?? false);
  const channelFd = reportFd + Number(options.hasReport ?? false);
  const { socketFd } = options;
  // What is ignored there is not open in the child.
  const gap = Math.max(0, (socketFd ?? 0) - channelFd - Number(options.hasChannel ?? false));
  const [file, argv] = options.hasChannel
    ? withChannelAsInput(channelFd, options)
    : [options.file, options.argv];
  const child = spawn(file, argv, {
    cwd: options.cwd ?? "/",
    env: { ...options.env },
    detached: true,
    stdio: [
      options.hasStdin ? "pipe" : "ignore",
      "pipe",
      "pipe",
      ...inputs.map(() => "pipe" as const),
      ...(options.hasHold ? ["pipe" as const] : []),
      ...(options.hasReport ? ["pipe" as const] : []),
      ...(options.hasChannel ? ["pipe" as const] : []),
      ...Array.from({ length: gap }, () => "ignore" as const),
      ...(socketFd === undefined ? [] : ["pipe" as const]),
    ],
    ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
  });
  const exited = new Promise<SubprocessExit>((resolve) => {
    child.once("exit", (code, signal) => {
      resolve({ exitCode: code ?? undefined, signal: signal ?? undefined });
    });
  });
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const stdout = new OutputTail(child.stdio[1] as Readable);
  const stderr = new OutputTail(child.stdio[2] as Readable);
  const pid = await started(child);
  try {
    await options.beforeInputs?.(pid);
  } catch (error) {
    child.kill("SIGKILL");
    for (const stream of child.stdio) stream?.destroy();
    throw error;
  }
  inputs.forEach((content, index) => feed(child.stdio[firstInputFd + index], content));
  const report = options.hasReport ? (child.stdio[reportFd] as Readable) : undefined;
  report?.on("error", ignoreBrokenPipe);
  const channel = options.hasChannel ? (child.stdio[channelFd] as Duplex) : undefined;
  channel?.on("error", ignoreBrokenPipe);
  const hold = options.hasHold ? (child.stdio[holdFd] as Writable) : undefined;
  hold?.on("error", ignoreBrokenPipe);
  // The type of `stdio` knows no more than five.
  const further: readonly (Readable | Writable | null | undefined)[] = child.stdio;
  const socket = socketFd === undefined ? undefined : (further[socketFd] as Duplex);
  socket?.on("error", ignoreBrokenPipe).pause();
  const stdin = child.stdio[0] ?? undefined;
  stdin?.on("error", ignoreBrokenPipe);
  return {
    pid,
    channel,
    stdin,
    hold,
    get stdout() {
      return stdout.stream;
    },
    get stderr() {
      return stderr.stream;
    },
    report,
    socket,
    exited,
    closed,
    output: () => ({ stdout: stdout.read(), stderr: stderr.read() }),
    kill: (signal) => void child.kill(signal),
    close: () => {
      for (const stream of child.stdio) stream?.destroy();
    },
  };
}

/**
 * Kills a child and its children. It is stopped first, since the next one that it starts would be
 * nobody's; a fork(2) that is under way when the signal is sent still comes to its end.
 */
export function killWithChildren(child: Pick<Subprocess, "pid" | "kill">): void {
  child.kill("SIGSTOP");
  const endMs = performance.now() + maxStopMs;
  while (runsOn(child.pid) && performance.now() < endMs);
  for (const pid of knownChildrenOf(child.pid)) signalQuietly(pid, "SIGKILL");
  child.kill("SIGKILL");
}

function runsOn(pid: number): boolean {
  const stat = readStat(`/proc/${pid}`);
  return stat !== undefined && !stat.isStopped && !stat.hasEnded;
}

/**
 * Waits until the output of a child that has ended is read. What was written is there at once; its
 * descriptor may have been sent to a process elsewhere, so the end of the stream is not waited for.
 */
export async function awaitOutput(
  { closed }: Subprocess,
  clock: Pick<Clock, "sleep">,
): Promise<void> {
  await settlesWithin(closed, outputGraceMs, clock);
}

/**
 * The same program with another of its descriptors as descriptor 0. What Node calls a pipe is a
 * pair of connected sockets, but of a child's descriptor 0 it reads nothing. Shells add variables
 * of their own to those that they hand on.
 */
function withChannelAsInput(
  channelFd: number,
  { file, argv, env }: Pick<SubprocessOptions, "file" | "argv" | "env">,
): readonly [file: string, argv: readonly string[]] {
  const script = `exec /usr/bin/env -i "$@" <&${channelFd} ${channelFd}<&-`;
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  return ["/bin/sh", ["-c", script, "sh", ...variables, file, ...argv]];
}

/**
 * Waits for the process to exist. `spawn` is emitted after a successful exec, `error` instead of
 * it.
 */
async function started(child: ChildProcess): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
  if (child.pid === undefined) throw new Error("the child has no process id");
  return child.pid;
}

function feed(stream: Readable | Writable | null | undefined, content: string | Uint8Array): void {
  const writable = stream as Writable;
  // A child that ends early breaks the pipe; its exit says so better.
  writable.on("error", ignoreBrokenPipe);
  writable.end(content);
}

function ignoreBrokenPipe(): void {
  // The end of the process is reported by its exit, not by its pipes.
}

/** Keeps the last `maxOutputBytes` of a stream, where a failing program says why. */
export class OutputTail {
  readonly #source: Readable;
  readonly #chunks: Buffer[] = [];
  #keptBytes = 0;
  #droppedBytes = 0;
  #stream: PassThrough | undefined;

  constructor(source: Readable) {
    this.#source = source;
    source.on("data", (chunk: Buffer) => this.#take(chunk));
    source.on("error", ignoreBrokenPipe);
  }

  /**
   * The tail so far and all later output, made at the first access. From then on the source waits
   * for its reader. Without a reader, the source is read and dropped.
   */
  get stream(): Readable {
    if (this.#stream !== undefined) return this.#stream;
    const stream = new PassThrough();
    this.#stream = stream;
    for (const chunk of this.#chunks) stream.write(chunk);
    if (this.#source.closed) return stream.end();
    // A source that is destroyed before its end does not end the pipe.
    this.#source.once("close", () => stream.end());
    return this.#source.pipe(stream);
  }

  #take(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#keptBytes += chunk.byteLength;
    for (let [first] = this.#chunks; first !== undefined; [first] = this.#chunks) {
      if (this.#keptBytes - first.byteLength < maxOutputBytes) return;
      this.#chunks.shift();
      this.#keptBytes -= first.byteLength;
      this.#droppedBytes += first.byteLength;
    }
  }

  read(): CapturedOutput {
    const kept = Buffer.concat(this.#chunks);
    const excessBytes = Math.max(0, kept.byteLength - maxOutputBytes);
    return {
      text: kept.subarray(excessBytes).toString("utf8"),
      droppedBytes: this.#droppedBytes + excessBytes,
    };
  }
}
