/**
 * `harness tool describe`: what tools say of themselves, as a worker derives it.
 */
import type { PublishedDescription } from "../../../worker/protocol/discovery/messages.ts";
import { InvocationError } from "../../../worker/protocol/errors.ts";
import type { JsonObject } from "../../../worker/support/json/json.ts";
import { wireDescribedTools, wireDescriptions } from "../../../worker/wiring/discovery.ts";
import { CommandError, type Context, UsageError, exit, withCauses } from "../../context.ts";
import { printable } from "../../invoke/screen.ts";
import { createPassableDirectory } from "../../temporary.ts";
import type { LocalFoundation } from "../local-foundation.ts";
import { type TargetFlags, openTarget, readTarget, servedNames } from "../target/open.ts";
import { type CodeTarget, type Target, servedName } from "../target/target.ts";
import { manifestEntry } from "../target/manifest-entry.ts";
import { asMembers, asText } from "./view.ts";

/** The command line, without the target. */
export interface ToolDescribeOptions extends TargetFlags {
  readonly config: JsonObject;
  readonly json?: boolean;
  /** Whether the manifest's entry is printed in place of the description. */
  readonly manifest?: boolean;
}

/** Descriptions by the names that people know the tools by. */
type Described = ReadonlyMap<string, PublishedDescription>;

/** Describes the tools and prints them. Throws CommandError where one cannot be described. */
export async function describeTarget(
  name: string,
  options: ToolDescribeOptions,
  context: Context,
): Promise<number> {
  const target = await readTarget(name, options, context);
  if (options.manifest && target.kind === "manifest")
    throw new UsageError(`--manifest is for code; ${name} has a manifest`);
  await using home = await createPassableDirectory("str-tool-describe-");
  await using opened = await openTarget(target, { ...options, home: home.path }, context);
  const described =
    target.kind === "code"
      ? await ofCode(target, opened, options, context)
      : await ofManifest(target, opened, options, context);
  const { out } = context;
  if (options.manifest && target.kind === "code") {
    out.line(printable(manifestEntry(target, [...described.keys()], options)));
  } else if (options.json) {
    out.line(printable(asJson(described, hasSeveral(target, described))));
  } else {
    out.line([...described].map(([tool, each]) => asText(tool, each)).join("\n\n"));
  }
  return exit.success;
}

/** Whether the target names more than one tool, as far as its description says. */
function hasSeveral(target: Target, described: Described): boolean {
  if (target.tool !== undefined) return false;
  return target.kind === "manifest" || !described.has(target.callable.name) || described.size > 1;
}

function asJson(described: Described, isList: boolean): string {
  const members = Array.from(described, ([name, each]) => [name, asMembers(each)] as const);
  const document = isList ? { tools: Object.fromEntries(members) } : members[0]?.[1];
  return JSON.stringify(document, undefined, 2);
}

/** A function or class by its own name, the tools of a provider or a program by theirs. */
async function ofCode(
  target: CodeTarget,
  { config, host, foundation }: LocalFoundation,
  { config: toolConfig }: ToolDescribeOptions,
  { signal }: Context,
): Promise<Described> {
  const { catalog } = foundation;
  const served = servedName(target);
  const { callable, tool } = target;
  const entry = catalog.resolve(served);
  if (entry === undefined) throw notServed(callable.name, catalog.unavailable(served)?.reason);
  const descriptions = wireDescriptions(config, host, foundation);
  return await withReasons(async () => {
    if (tool !== undefined || callable.kind === "function") {
      const described = await descriptions.describe(entry, signal, toolConfig);
      return new Map([[tool ?? callable.name, described]]);
    }
    const all = await descriptions.describeAll(entry, signal, toolConfig);
    // A class that is a tool itself has no other name.
    const titleOf = (name: string): string =>
      callable.kind === "class" && name === served ? callable.name : name;
    return new Map(Array.from(all, ([name, each]) => [titleOf(name), each]));
  });
}

/** Tools of a manifest, as workers announce them. */
async function ofManifest(
  target: Target,
  opened: LocalFoundation,
  { config: toolConfig }: ToolDescribeOptions,
  { signal }: Context,
): Promise<Described> {
  const { config, host, foundation } = opened;
  const { catalog } = foundation;
  using tools = wireDescribedTools(config, host, foundation);
  const described = new Map<string, PublishedDescription>();
  for (const name of servedNames(target, opened)) {
    const entry = catalog.resolve(name);
    if (entry === undefined) throw notServed(name, catalog.unavailable(name)?.reason);
    const ask = () => tools.forRequest(entry, toolConfig, signal);
    described.set(name, await withReasons(ask, name));
  }
  return described;
}

function notServed(name: string, reason = "it is not there"): CommandError {
  return new CommandError(`${name} cannot be served: ${reason}`);
}

/** Turns an InvocationError into a CommandError with its causes. */
async function withReasons<T>(ask: () => Promise<T>, name?: string): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof InvocationError)) throw error;
    const of = name === undefined ? "" : `${name}: `;
    const text = [`${of}${error.code}: ${error.message}`, ...withCauses(error.cause)];
    throw new CommandError(text.join("\n  because: "), { cause: error });
  }
}
