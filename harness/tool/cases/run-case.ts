/**
 * One test case: its call, and what is not as the case expects.
 */
import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { buffer } from "node:stream/consumers";
import { guessMimeType } from "../../../worker/artifacts/mime.ts";
import type { CreatedArtifact } from "../../../worker/protocol/invocation.ts";
import type { CallArtifacts } from "../../artifacts.ts";
import { type Context, UsageError, withCauses } from "../../context.ts";
import { type CallInputs, stageInputs } from "../../invoke/call-inputs.ts";
import type { Answer } from "../../messages.ts";
import { type CallEnd, callHere } from "../local-call.ts";
import type { LocalInvoker } from "../local-invoker.ts";
import type { CaseInput, Expected, TestCase } from "./case-file.ts";
import { differences, differs, textDifference } from "./differences.ts";

/** What became of a case. */
export interface CaseEnd {
  /** One line each; none when the case has passed. */
  readonly problems: readonly string[];
  readonly executionTimeMs: number;
}

/** Makes the call of a case of the file `path`. Throws UsageError for inputs that are not there. */
export async function runCase(
  localInvoker: LocalInvoker,
  path: string,
  testCase: TestCase,
  context: Context,
): Promise<CaseEnd> {
  const { tool, args, config } = testCase;
  const inputs = await inputsOf(testCase, dirname(path));
  const staged = await stageInputs(inputs, args, localInvoker.artifacts, context.signal);
  const call = { tool, toolConfig: config, ...staged };
  const statuses: string[] = [];
  const end = await callHere(localInvoker, call, (text) => statuses.push(text), context);
  const problems = [
    ...answerProblems(testCase.expect, end),
    ...(await artifactProblems(testCase.expect, end, localInvoker.artifacts, context.signal)),
    ...differences("statuses", testCase.expect.statuses ?? statuses, statuses, "exact"),
  ];
  return { problems, executionTimeMs: end.executionTimeMs };
}

/** The artifacts of a case as `--artifact` and `--preload` have them. */
async function inputsOf({ artifacts }: TestCase, directory: string): Promise<CallInputs> {
  const uploads: CallInputs["artifacts"][number][] = [];
  const preloaded: CallInputs["preloaded"][number][] = [];
  const lists = new Set<string>();
  for (const [parameter, value] of Object.entries(artifacts)) {
    if (Array.isArray(value)) lists.add(parameter);
    for (const input of Array.isArray(value) ? value : [value]) {
      if (typeof input === "string") {
        uploads.push([parameter, await uploadOf(join(directory, input))]);
      } else preloaded.push([parameter, preloadOf(input)]);
    }
  }
  return { artifacts: uploads, preloaded, lists };
}

async function uploadOf(path: string) {
  const stats = await stat(path).catch(() => undefined);
  if (!stats?.isFile()) throw new UsageError(`the artifact ${path} is no file`);
  return { kind: "upload", path, sizeBytes: stats.size } as const;
}

function preloadOf({ filename, text }: Exclude<CaseInput, string>) {
  const mimeType = guessMimeType(filename);
  return { filename, version: 0, mimeType, bytes: Buffer.from(text) };
}

function answerProblems(expected: Expected, { answer, cause }: CallEnd): readonly string[] {
  const { error, result, result_includes: included } = expected;
  const failure = failureOf(answer);
  if (failure !== undefined) {
    if (error === undefined) {
      const causes = withCauses(cause).map((line) => `because: ${line}`);
      return [`failed: ${failure.code}: ${failure.message}`, ...causes];
    }
    const { code, message = failure.message } = error;
    return differences("error", { code, message }, failure, "exact");
  }
  const found = answer.kind === "success" ? answer.toolResult : undefined;
  if (error !== undefined) return [differs("error", error.code, undefined)];
  return [
    ...differences("result", result ?? found, found, "exact"),
    ...differences("result", included ?? {}, found, "includes"),
  ];
}

interface Failed {
  readonly code: string;
  readonly message: string;
}

/** Undefined for a result. */
function failureOf(answer: Answer): Failed | undefined {
  switch (answer.kind) {
    case "success":
      return undefined;
    case "error":
      return { code: answer.code, message: answer.message };
    case "timed-out":
      return { code: "SANDBOX_TIMEOUT", message: answer.message };
    case "unusable":
      return { code: "INVALID_RESPONSE", message: answer.problem };
  }
}

async function artifactProblems(
  { artifacts: expected }: Expected,
  { answer }: CallEnd,
  artifacts: CallArtifacts,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (expected === undefined || answer.kind !== "success") return [];
  const created = new Map(answer.createdArtifacts.map((each) => [each.filename, each]));
  const names = [Object.keys(expected).sort(), [...created.keys()].sort()];
  const problems = [...differences("artifacts", names[0], names[1], "exact")];
  for (const [filename, text] of Object.entries(expected)) {
    const artifact = created.get(filename);
    if (artifact === undefined) continue;
    const found = await contentOf(artifact, artifacts, signal);
    problems.push(...textDifference(`artifact ${filename}`, text, found));
  }
  return problems;
}

async function contentOf(
  artifact: CreatedArtifact,
  { store, scope }: CallArtifacts,
  signal: AbortSignal,
): Promise<string> {
  const opened = await store.open(scope, artifact, signal);
  return (await buffer(opened.body)).toString();
}
