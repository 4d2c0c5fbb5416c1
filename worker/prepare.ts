/**
 * `str-worker --prepare`: installs the packages of all tools of the manifest, for images and hosts
 * without a network.
 */
import type { Config } from "./config/config.ts";
import type { Host } from "./wiring/host.ts";
import { openLanguages } from "./wiring/languages.ts";
import { openManifest, openToolsets } from "./wiring/manifest.ts";
import { openBackend, readProfiles } from "./wiring/sandboxes.ts";

/** Result of a preparation. */
export interface PrepareReport {
  /** The environments and the failures as indented JSON. */
  readonly text: string;
  /** Failures, one line each. */
  readonly problems: readonly string[];
}

/** Installs what is missing. Throws ConfigError, ProfilesError, SandboxError, ManifestError. */
export async function prepare(
  config: Config,
  host: Host,
  signal: AbortSignal,
): Promise<PrepareReport> {
  const profiles = await readProfiles(config);
  await using backend = await openBackend(config, host, { profiles }, signal);
  const { scratchDir } = backend;
  const toolsets = await openToolsets(config, host, { profiles, scratchDir }, signal);
  await using catalog = await openManifest(config, host, { profiles, toolsets }, signal);
  const tools = [...catalog.manifest.tools.values()].filter(({ packages }) => packages);
  if (tools.length === 0) return report([], []);
  const given = { backend, installs: "wait", toolsets } as const;
  await using languages = await openLanguages(config, host, given);
  const { environments } = languages;
  const reasons = await Promise.all(
    tools.map((tool) =>
      environments.refuse(tool, signal).then(
        (refusal) => refusal?.reason,
        (error: unknown) => {
          signal.throwIfAborted();
          return error instanceof Error ? error.message : String(error);
        },
      ),
    ),
  );
  const rows = tools.flatMap((tool) => {
    const installation = environments.installationOf(tool);
    return installation === undefined ? [] : [{ tool: tool.name, ...installation }];
  });
  const problems = reasons.flatMap((reason, index) =>
    reason === undefined ? [] : [`tool "${tools[index]?.name}": ${reason}`],
  );
  return report(rows, problems);
}

function report(
  installed: readonly { tool: string; key: string; dir: string }[],
  problems: readonly string[],
): PrepareReport {
  const environments = installed.map(({ tool, key, dir }) => ({ tool, key, dir }));
  return { text: JSON.stringify({ environments, problems }, undefined, 2), problems };
}
