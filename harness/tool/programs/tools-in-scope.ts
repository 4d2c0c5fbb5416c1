/**
 * The tools that an entry of a manifest may call, with their descriptions.
 */
import type { CatalogTool } from "../../../worker/gateway/catalog.ts";
import { RemoteDirectory } from "../../../worker/gateway/remote.ts";
import type { Manifest, ToolEntry } from "../../../worker/manifest/manifest.ts";
import { InvocationError } from "../../../worker/protocol/errors.ts";
import { ToolScope } from "../../../worker/protocol/tool-calls/tool-id.ts";
import { CallableTools } from "../../../worker/runtime/callable-tools.ts";
import { wireDescribedTools } from "../../../worker/wiring/discovery.ts";
import { CommandError, type Context, UsageError } from "../../context.ts";
import { findPrograms } from "../../prerequisites.ts";
import { createPassableDirectory } from "../../temporary.ts";
import { hasManifest, layoutOf, usualToolsDir } from "../../tools-layout.ts";
import { callableOf } from "../callable-of.ts";
import { type LocalFoundation, openManifestFoundation } from "../local-foundation.ts";

/** Options that say which manifest is meant. */
export interface ManifestFlags {
  /** Directory of the manifest; the usual one unless given. */
  readonly dir?: string;
}

/** An entry with a gateway, and the tools in its scope. */
export interface ToolsInScope {
  readonly entry: ToolEntry;
  /** Sorted by id. */
  readonly tools: readonly CatalogTool[];
}

/**
 * Describes the tools in sandboxes, and calls none. Tells of listed tools that are not there.
 * Throws UsageError for an entry that calls no tools, CommandError for one that is not served.
 */
export async function readToolsInScope(
  name: string,
  { dir }: ManifestFlags,
  context: Context,
): Promise<ToolsInScope> {
  const directory = dir ?? (await usualToolsDir());
  if (!(await hasManifest(directory))) throw new UsageError(`${directory} has no manifest.yaml`);
  await using home = await createPassableDirectory("str-tool-scope-");
  const programs = await findPrograms(context.environment);
  const options = { layout: await layoutOf(directory), programs, home: home.path };
  await using opened = await openManifestFoundation(options, context);
  const { manifest } = opened.foundation.catalog;
  const entry = callingEntry(manifest, name);
  const patterns = entry.gateway?.tools ?? [];
  const remote = new RemoteDirectory();
  remote.follow(entry.gateway?.remote ?? []);
  const tools = await describeAll(callableOf(manifest, patterns), remote, opened, context);
  for (const pattern of patterns) {
    const scope = new ToolScope([pattern]);
    if (tools.some((tool) => scope.allows(tool.entry.id))) continue;
    context.err.line(`${pattern}: the manifest serves no such tool that programs may call`);
  }
  return { entry, tools };
}

function callingEntry({ tools, unavailable }: Manifest, name: string): ToolEntry {
  const refused = unavailable.get(name);
  if (refused !== undefined) throw new CommandError(`${name} cannot be served: ${refused.reason}`);
  const entry = tools.get(name);
  if (entry?.gateway !== undefined) return entry;
  const problem = entry === undefined ? "is not in the manifest" : 'has no "gateway"';
  const names = [...tools.values()].filter(({ gateway }) => gateway).map((each) => each.name);
  const others = names.join(", ") || "none";
  throw new UsageError(`${name} ${problem}; entries that call tools: ${others}`);
}

/** A tool whose code cannot be described has the manifest's parts; the log has the reason. */
async function describeAll(
  entries: readonly ToolEntry[],
  remote: RemoteDirectory,
  { config, host, foundation, descriptionsDir }: LocalFoundation,
  { signal }: Context,
): Promise<readonly CatalogTool[]> {
  using described = wireDescribedTools(config, host, foundation, descriptionsDir);
  const describe = async (tool: ToolEntry): Promise<void> => {
    try {
      await described.forRequest(tool, {}, signal);
    } catch (error) {
      if (!(error instanceof InvocationError)) throw error;
    }
  };
  await Promise.all(entries.map(describe));
  const tools = new Map(entries.map((tool) => [tool.name, tool]));
  const parts = {
    tools: () => tools,
    described: () => described.settled,
    // Without a broker nothing is known of them but their names.
    remote: () => remote.entries,
  };
  return [...new CallableTools(parts).snapshot().catalog.tools];
}
