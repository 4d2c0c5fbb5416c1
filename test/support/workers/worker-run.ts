/**
 * The worker's command line in this process, to its end: for what it says and how it ends by
 * itself.
 */
import { Writable } from "node:stream";
import { run } from "../../../worker/command-line.ts";
import { sharedPreparations } from "./shared-preparations.ts";
import { programEnvironment } from "./program-environment.ts";

/** Exit code, and everything on stdout and stderr. */
export interface WorkerEnding {
  readonly code: number;
  readonly output: string;
}

/**
 * Runs the worker as `WorkerProcess` does. It is never stopped: what it runs with must make it end.
 */
export async function runWorker(
  environment: Readonly<Record<string, string>>,
  argv: readonly string[] = [],
): Promise<WorkerEnding> {
  let output = "";
  const collected = new Writable({
    write(chunk: Buffer, _encoding, done) {
      output += chunk.toString();
      done();
    },
  });
  const code = await run(argv, {
    // Sandboxes wait for calls only where a test asks for it.
    environment: { ...programEnvironment(), WARM_MAX_MEMORY_MB: "0", ...environment },
    out: collected,
    err: collected,
    preparations: sharedPreparations,
    onSignal: () => undefined,
    exitNow: (exitCode) => {
      throw new Error(`the worker ended at once, with ${exitCode}`);
    },
    // They are the test runner's.
    closeInheritedDescriptors: () => undefined,
  });
  return { code, output };
}
