/**
 * Runs programs that change the machine, so that none of them outlives an interrupted setup.
 */
import { spawn } from "node:child_process";
import { clearTimeout, setTimeout } from "node:timers";
import { say } from "./report.mjs";

/** What a terminal, a shell or a service manager sends to end setup. */
const endingSignals = ["SIGINT", "SIGTERM", "SIGHUP"];
/** For a program that cleans up, as npm does between two steps of an installation. */
const graceMs = 5_000;
/** Kept of a program's output for the case that it fails. */
const outputLimitBytes = 16 * 1024 * 1024;

/** Setup was told to end, and the program it ran has ended. */
export class Interrupted extends Error {
  /** @param signal the first signal that came */
  constructor(signal) {
    super(`interrupted by ${signal}`);
    this.signal = signal;
  }
}

/**
 * Runs `command` in a process group of its own to its end; forwards signals to the group and kills
 * it on a second one. Rejects with Interrupted after a signal. Gives `error` when the command
 * cannot start, `output` where it is captured.
 *
 * @param options `cwd`, `env`; `input`, written to stdin; `captures`, to keep stdout and stderr;
 *   `lock`, a descriptor that the program holds open as its fourth; `timeoutMs`, after which the
 *   group is killed
 */
export function runInstaller([command, ...args], options = {}) {
  const { cwd, env, input, captures = false, lock, timeoutMs } = options;
  const output = captures ? "pipe" : "inherit";
  let interruptedBy;
  let killer;
  const kill = () => signalGroup(child.pid, "SIGKILL");
  const end = (signal) => {
    if (interruptedBy !== undefined) return kill();
    interruptedBy = signal;
    say(`ending ${command}, in ${graceMs / 1_000} s at most; interrupt again to end it at once`);
    signalGroup(child.pid, signal);
    killer = setTimeout(kill, graceMs);
  };
  // Before the program starts: a signal in between would end setup and leave the program running.
  for (const signal of endingSignals) process.on(signal, end);
  const child = spawn(command, args, {
    cwd,
    env,
    detached: true,
    stdio: [input === undefined ? "ignore" : "pipe", output, output].concat(lock ?? []),
  });
  const timeout = timeoutMs === undefined ? undefined : setTimeout(kill, timeoutMs);
  const text = captures ? collect(child) : () => "";
  child.stdin?.on("error", () => {}); // a program that ends without reading tells more by its status
  child.stdin?.end(input);
  return new Promise((resolve, reject) => {
    const ended = (result) => {
      for (const timer of [killer, timeout]) clearTimeout(timer);
      for (const signal of endingSignals) process.off(signal, end);
      if (interruptedBy === undefined) resolve({ ...result, output: text() });
      else reject(new Interrupted(interruptedBy));
    };
    child.on("error", (error) => ended({ status: null, error }));
    child.on("close", (status) => ended({ status }));
  });
}

/** A member of the group that setup may not signal, such as sudo, is waited for instead. */
function signalGroup(leader, signal) {
  try {
    if (leader !== undefined) process.kill(-leader, signal);
  } catch (error) {
    if (error.code !== "ESRCH" && error.code !== "EPERM") throw error;
  }
}

/** Returns a function that gives the last of what the program has printed. */
function collect(child) {
  const chunks = [];
  let bytes = 0;
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      chunks.push(chunk);
      bytes += chunk.length;
      while (bytes > outputLimitBytes) bytes -= chunks.shift().length;
    });
  }
  return () => Buffer.concat(chunks).toString("utf8").trim();
}
