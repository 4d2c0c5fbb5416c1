/**
 * Signals in exit codes, as shells report them.
 */
import { constants } from "node:os";

/** 128 + the number of a signal is the exit code for it. */
const signalBase = 128;

/** The first name wins where a signal has two: SIGABRT, not SIGIOT. */
const signalNames = new Map(
  Object.entries(constants.signals)
    .toReversed()
    .map(([name, number]) => [number, name]),
);

/** The signal that an exit code stands for; undefined for any other code. */
export function signalOfExitCode(exitCode: number): string | undefined {
  return signalNames.get(exitCode - signalBase);
}
