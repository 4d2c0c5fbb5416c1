/**
 * Wires what tells agents of tools, over the foundation: descriptions, and answers to requests.
 */
import { join } from "node:path";
import type { ReconnectingSession } from "../broker/reconnecting.ts";
import type { Config } from "../config/config.ts";
import { Descriptions } from "../descriptions/descriptions.ts";
import { KeptDescriptions } from "../descriptions/kept.ts";
import { type DescribeTool, DescribedTools } from "../discovery/described-tools.ts";
import { Discovery } from "../discovery/discovery.ts";
import { type ResolveParts, resolveProfile } from "../invocation/steps/resolve.ts";
import { RemoteTools } from "../runtime/remote/remote-tools.ts";
import type { Foundation } from "./foundation.ts";
import type { Host } from "./host.ts";
import { toolRunnerDir } from "./shipped.ts";

/** Directory of descriptions below `SANDBOX_WORK_DIR`. */
const keptDescriptions = "descriptions";

/**
 * Wires the descriptions of tools. They end with the foundation.
 *
 * @param directory where they are kept; below the work directory unless given
 */
export function wireDescriptions(
  { sandbox }: Config,
  { log }: Pick<Host, "log">,
  { catalog, profiles, ...starts }: Foundation,
  directory = join(sandbox.workDir, keptDescriptions),
): Descriptions {
  const resolving: ResolveParts = {
    resolve: (toolName) => catalog.resolve(toolName),
    profiles,
    defaultProfile: sandbox.defaultProfile,
    hostNetwork: sandbox.hostNetwork,
  };
  return new Descriptions({
    starts,
    runnerDirOf: (runtime) => (runtime === "executable" ? undefined : toolRunnerDir(runtime)),
    kept: new KeptDescriptions(directory, log.child({ part: "descriptions" })),
    profileOf: (tool) => resolveProfile(resolving, tool, { requestedProfile: undefined }),
  });
}

/**
 * Wires the described tools: by the manifest alone where the configuration says so. The caller
 * disposes them before the foundation.
 *
 * @param directory as of {@link wireDescriptions}
 */
export function wireDescribedTools(
  config: Config,
  host: Host,
  foundation: Foundation,
  directory?: string,
): DescribedTools {
  const { clock } = host;
  const log = host.log.child({ part: "schemas" });
  if (config.describedBy === "manifest") return new DescribedTools({ clock, log });
  const descriptions = wireDescriptions(config, host, foundation, directory);
  const describe: DescribeTool = (tool, whileAsking, toolConfig) => {
    foundation.codeWatch.follow(tool.runtime);
    return descriptions.describe(tool, whileAsking, toolConfig);
  };
  return new DescribedTools({ describe, clock, log });
}

/** Wires the tools of other workers. The caller disposes them before the session. */
export function wireRemoteTools(
  { namespace }: Pick<Config, "namespace">,
  { clock, log }: Host,
  session: ReconnectingSession,
): RemoteTools {
  return new RemoteTools({ session, namespace, clock, log: log.child({ part: "remote-tools" }) });
}

/** Starts discovery; undefined without it. The caller disposes it before the session. */
export function startDiscovery(
  { namespace, isDiscoverable }: Config,
  { clock, log }: Host,
  { catalog }: Foundation,
  session: ReconnectingSession,
  tools: DescribedTools,
): Discovery | undefined {
  if (!isDiscoverable) return undefined;
  const resolve = (tool: string) => catalog.resolve(tool);
  const parts = { session, namespace, tools, resolve, clock };
  return new Discovery({ ...parts, log: log.child({ part: "discovery" }) });
}
