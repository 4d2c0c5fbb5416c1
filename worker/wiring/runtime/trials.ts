/**
 * Trials: which limits a backend keeps on this host, seen by code that reaches for each.
 */
import type { ExecutionReport } from "../../protocol/execution.ts";
import type { InvocationOutcome } from "../../protocol/invocation.ts";
import type { LimitName, Limits } from "../../protocol/resource-limits.ts";
import { type Evidence, type LimitKind, limitKinds } from "../../runtime/api/limits.ts";

const mebibyte = 1024 * 1024;

/** What runs code. */
export type TriedInterpreter = "python" | "node";

/** Code that reaches for a limit, and what it comes to where nobody stops it: `true`. */
interface Trial {
  readonly kind: "memory" | "cpu" | "pids" | "disk";
  readonly limit: LimitName;
  readonly bound: number;
  readonly code: Readonly<Record<TriedInterpreter, string>>;
}

const trials: readonly Trial[] = [
  {
    ...{ kind: "memory", limit: "memoryBytes", bound: 192 * mebibyte },
    code: {
      python: "kept = [bytes([n % 251]) * (8 << 20) for n in range(64)]\n__out = len(kept) == 64",
      node: "const kept = []; for (let n = 0; n < 64; n++) kept.push(Buffer.alloc(8 << 20, 1 + n)); __out = kept.length === 64",
    },
  },
  {
    ...{ kind: "cpu", limit: "cpuSeconds", bound: 0.5 },
    code: {
      python: "import time\nwhile time.process_time() < 4: pass\n__out = True",
      node: "const start = process.cpuUsage(); while (process.cpuUsage(start).user < 4e6) {} __out = true",
    },
  },
  {
    ...{ kind: "pids", limit: "processes", bound: 24 },
    code: {
      python: [
        "import os, signal",
        "made = []",
        "try:",
        "    for n in range(40):",
        "        child = os.fork()",
        "        if child == 0:",
        "            signal.pause()",
        "            os._exit(0)",
        "        made.append(child)",
        "except OSError:",
        "    pass",
        "for child in made: os.kill(child, signal.SIGKILL)",
        "__out = len(made) == 40",
      ].join("\n"),
      node: [
        'import { spawn } from "node:child_process";',
        "const made = [];",
        'for (let n = 0; n < 40; n++) made.push(spawn("/usr/bin/sleep", ["60"], { stdio: "ignore" }));',
        'const ends = made.map((child) => new Promise((resolve) => child.once("spawn", () => resolve(true)).once("error", () => resolve(false))));',
        "const all = await Promise.all(ends);",
        'for (const child of made) child.kill("SIGKILL");',
        "__out = all.every(Boolean)",
      ].join("\n"),
    },
  },
  {
    ...{ kind: "disk", limit: "diskBytes", bound: 8 * mebibyte },
    code: {
      python: [
        "import os, time",
        'with open("filled", "wb") as file:',
        "    for _ in range(32):",
        "        file.write(os.urandom(1 << 20))",
        "        file.flush()",
        "        time.sleep(0.03)",
        "__out = True",
      ].join("\n"),
      node: [
        'import { appendFileSync } from "node:fs";',
        'import { randomBytes } from "node:crypto";',
        "for (let n = 0; n < 32; n++) {",
        '  appendFileSync("filled", randomBytes(1 << 20));',
        "  await new Promise((resolve) => setTimeout(resolve, 30));",
        "}",
        "__out = true",
      ].join("\n"),
    },
  },
];

/** Runs code under a profile's limits with these in their place. */
export type RunTrial = (code: string, limits: Partial<Limits>) => Promise<InvocationOutcome>;

/** The limits that stopped code of an interpreter which reached for them. */
export async function tryLimits(interpreter: TriedInterpreter, run: RunTrial): Promise<Evidence> {
  const seen = trials.map(async ({ kind, limit, bound, code }) => {
    const outcome = await run(code[interpreter], { [limit]: bound });
    const by = wasStopped(outcome, limit) ? enforcerOf(outcome.execution, limit) : undefined;
    return by === undefined ? [] : [[kind, by] as const];
  });
  return Object.fromEntries((await Promise.all(seen)).flat());
}

/** Those that all interpreters are held to, by the one that keeps them least. */
export function heldByAll(evidence: readonly Evidence[]): Evidence {
  const [first = {}, ...others] = evidence;
  const kinds = limitKinds.filter((kind) => evidence.every((each) => each[kind] !== undefined));
  const leastOf = (kind: LimitKind) =>
    others.find((each) => each[kind] === "guard")?.[kind] ?? first[kind];
  return Object.fromEntries(kinds.map((kind) => [kind, leastOf(kind)]));
}

/** Whether the code ran, and was refused or ended for this limit. */
function wasStopped(outcome: InvocationOutcome, limit: LimitName): boolean {
  if (outcome.kind === "success") return outcome.toolResult["value"] === false;
  if (outcome.kind !== "error") return false;
  const { code, message, limit: met } = outcome.error;
  // Some containers tell of no limit when the kernel ends them for their memory.
  const isKilled = code === "SANDBOX_FAILED" && message.includes("was ended by SIGKILL");
  return met?.limit === limit || (limit === "memoryBytes" && isKilled);
}

function enforcerOf(
  report: ExecutionReport | undefined,
  limit: LimitName,
): "kernel" | "guard" | undefined {
  const by = report?.enforcedBy[limit];
  return by === "none" ? undefined : by;
}
