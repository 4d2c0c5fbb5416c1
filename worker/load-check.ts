/**
 * Loads each tool in its own sandbox without calling it, for `str-worker --check`.
 */
import { runUncalled } from "./descriptions/uncalled.ts";
import type { Config } from "./config/config.ts";
import { resolveProfile } from "./invocation/steps/resolve.ts";
import { readResult } from "./invocation/steps/result.ts";
import type { ToolEntry } from "./manifest/manifest.ts";
import { InvocationError } from "./protocol/errors.ts";
import { maxMessageBytes } from "./protocol/limits.ts";
import type { Profile } from "./sandbox/profile.ts";
import { type ExitReport, SandboxError } from "./sandbox/sandbox.ts";
import { acquireCold } from "./pool/cold-starts.ts";
import { Semaphore } from "./support/semaphore.ts";
import type { Foundation } from "./wiring/foundation.ts";

/** Milliseconds that a tool may take to load. */
const loadTimeoutMs = 60_000;
/** Last lines of standard error in the report. */
const maxOutputLines = 20;

/** A tool that does not load. */
export interface LoadProblem {
  /** Error of its calls. */
  readonly problem: string;
  /** The end of standard error, such as a traceback. */
  readonly output: readonly string[];
}

/**
 * Finds tools whose module cannot be imported, or lacks the name of the manifest. Runs the modules
 * in sandboxes like those of calls. Rejects with the signal's reason.
 */
export async function checkLoading(
  { sandbox }: Config,
  foundation: Foundation,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, LoadProblem>> {
  const { catalog, profiles } = foundation;
  const { defaultProfile, hostNetwork } = sandbox;
  const resolving = { resolve: () => undefined, profiles, defaultProfile, hostNetwork };
  const slots = new Semaphore({ capacity: sandbox.maxConcurrent, maxWaiting: Infinity });
  const found = await Promise.all(
    Array.from(catalog.manifest.tools.values(), async (tool) => {
      // An executable cannot be loaded without a call; `refuse` of its runner has looked at it. A
      // program comes with its call.
      if (tool.runtime === "executable" || tool.languages !== undefined) return [];
      using _slot = await slots.acquire(signal);
      const profile = resolveProfile(resolving, tool, { requestedProfile: undefined });
      const problem = await load(tool, profile, foundation, signal).catch((error: unknown) => {
        if (error instanceof InvocationError || error instanceof SandboxError) {
          return { problem: error.message, output: [] };
        }
        throw error;
      });
      return problem === undefined ? [] : [[tool.name, problem] as const];
    }),
  );
  return new Map(found.flat());
}

async function load(
  tool: ToolEntry,
  profile: Profile,
  foundation: Foundation,
  signal: AbortSignal,
): Promise<LoadProblem | undefined> {
  await using acquired = await acquireCold(foundation, tool, profile, signal);
  const { sandbox } = acquired;
  const run = {
    entry: tool,
    tool: acquired.tool,
    sandbox,
    start: (text: string, whileStarting?: AbortSignal) => acquired.start(text, whileStarting),
    task: "load_only",
    toolConfig: {},
    maxResultBytes: maxMessageBytes,
    limitMs: loadTimeoutMs,
  } as const;
  const { cause, report } = await runUncalled(run, signal);
  if (cause === "time-limit") {
    return { problem: `is not loaded within ${loadTimeoutMs / 1000} s`, output: endOf(report) };
  }
  try {
    await readResult(sandbox.workDir, report, sandbox.limits, signal);
    return undefined;
  } catch (error) {
    if (!(error instanceof InvocationError)) throw error;
    return { problem: `${error.code}: ${error.message}`, output: endOf(report) };
  }
}

function endOf({ stderr }: ExitReport): readonly string[] {
  return stderr.text.trimEnd().split("\n").slice(-maxOutputLines);
}
