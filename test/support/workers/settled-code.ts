/**
 * Whether a worker takes code for settled: sandboxes of code that was written a moment before are
 * given up once more.
 */

/** Whether the worker has looked at a language's code, and found it as it was before. */
export function isCodeSettled(logLines: readonly string[], runtime: string): boolean {
  const last = logLines.findLast(
    (line) => line.includes("isSettled") && line.includes(`"runtime":"${runtime}"`),
  );
  return last?.includes('"isSettled":true') === true;
}
