/**
 * The process's edge of the harness: environment, streams, signals, exit code.
 */
import { constants } from "node:os";
import { systemClock } from "../worker/support/clock.ts";
import { closeInheritedDescriptors } from "../worker/support/inherited-descriptors.ts";
import { createSignalFilter } from "../worker/support/signal-filter.ts";
import { Interruption } from "./context.ts";
import { run } from "./program.ts";
import { Screen } from "./invoke/screen.ts";

/** A shell's number for a signal is this plus the signal's. */
const signalBase = 128;

// A tool or a worker that a command starts must have none of them.
closeInheritedDescriptors();

const stopping = new AbortController();
const isNews = createSignalFilter(systemClock);
let isLeftToOthers = false;

/** A first signal ends what is going on in good order, a second one at once. */
function interrupt(name: "SIGINT" | "SIGTERM"): void {
  if (name === "SIGINT" && isLeftToOthers) return;
  if (!isNews(name)) return;
  if (stopping.signal.aborted) process.exit(exitCodeOf(name));
  stopping.abort(new Interruption(`ended by ${name}`, exitCodeOf(name)));
}

function exitCodeOf(name: NodeJS.Signals): number {
  return signalBase + constants.signals[name];
}

/** A terminal sends Ctrl-C to a command that we have given it to as well. */
function leaveInterrupts(): Disposable {
  isLeftToOthers = true;
  return { [Symbol.dispose]: () => void (isLeftToOthers = false) };
}

process.on("SIGINT", () => interrupt("SIGINT"));
process.on("SIGTERM", () => interrupt("SIGTERM"));
// A reader that has gone, such as head(1), ends other programs by a signal; Node reports it here,
// at every write.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", () => {
    stopping.abort(new Interruption("nobody reads what is written", exitCodeOf("SIGPIPE")));
  });
}

process.exitCode = await run(process.argv.slice(2), {
  environment: process.env,
  out: new Screen(process.stdout),
  err: new Screen(process.stderr),
  openInput: () => process.stdin,
  signal: stopping.signal,
  clock: systemClock,
  leaveInterrupts,
});
