/**
 * `harness network explain`: reads manifest and profiles, and prints what tools may reach.
 */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import {
  ConfigError,
  type Environment,
  type SandboxConfig,
  readSandboxConfig,
} from "../../worker/config/config.ts";
import { ownPaths } from "../../worker/config/secret-files.ts";
import { CredentialSources } from "../../worker/egress/edge/credential-sources.ts";
import { type Manifest, ManifestError, type ToolEntry } from "../../worker/manifest/manifest.ts";
import { parseManifest } from "../../worker/manifest/parse.ts";
import { formatProblem } from "../../worker/support/file-problems.ts";
import { type Context, UsageError, exit } from "../context.ts";
import { printable } from "../invoke/screen.ts";
import { networkVariable, profilesVariable, readProfiles } from "../tool/profiles.ts";
import { layoutOf, usualToolsDir } from "../tools-layout.ts";
import { type Explanation, explain } from "./explain.ts";
import { wordsOf } from "./words.ts";

/** The command line, without the tool. */
export interface ExplainOptions {
  readonly manifest?: string;
  readonly profiles?: string;
  readonly json?: boolean;
}

/** Prints it. Returns 0. Throws UsageError. */
export async function explainTools(
  name: string | undefined,
  { manifest: given, profiles: profilesFile, json = false }: ExplainOptions,
  context: Context,
): Promise<number> {
  const environment = {
    ...context.environment,
    ...(profilesFile !== undefined && { [profilesVariable]: resolve(profilesFile) }),
  };
  const path = given ?? (context.environment["MANIFEST_PATH"] || (await usualManifest()));
  const sandbox = sandboxOf(environment);
  const { defaultProfile, defaultNetwork, hostNetwork } = sandbox;
  const credentialSources = new CredentialSources({
    allowed: sandbox.credentialSources,
    ownFiles: ownPaths(environment),
  });
  const profiles = await readProfiles(environment);
  const otherNetwork = defaultNetwork === "host" ? "public" : "host";
  const otherProfiles = await readProfiles({ ...environment, [networkVariable]: otherNetwork });
  if (!profiles.has(defaultProfile))
    throw new UsageError(`SANDBOX_DEFAULT_PROFILE: there is no profile ${defaultProfile}`);
  const manifest = await readManifest(path, [...profiles.keys()], context);
  const explained = toolsOf(manifest, name, path).map((tool) => {
    const other = { otherProfiles, defaultProfile, hostNetwork, credentialSources };
    return explain(tool, { profiles, ...other });
  });
  const { out } = context;
  for (const [index, explanation] of explained.entries()) {
    if (json) out.line(printable(JSON.stringify(bodyOf(explanation))));
    else {
      if (index > 0) out.line();
      for (const line of wordsOf(explanation)) out.line(printable(line));
    }
  }
  return exit.success;
}

async function usualManifest(): Promise<string> {
  return (await layoutOf(await usualToolsDir())).manifestPath;
}

function sandboxOf(environment: Environment): SandboxConfig {
  try {
    return readSandboxConfig(environment, ["CREDENTIAL_SOURCES"]).sandbox;
  } catch (error) {
    if (error instanceof ConfigError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

async function readManifest(
  path: string,
  profileNames: readonly string[],
  { err }: Context,
): Promise<Manifest> {
  const bytes = await readFile(path).catch((error: unknown) => {
    throw new UsageError(`${path} cannot be read; name it with --manifest`, { cause: error });
  });
  try {
    const { manifest, warnings } = parseManifest(bytes, { path, profileNames });
    for (const warning of warnings) err.line(printable(`warning: ${formatProblem(path, warning)}`));
    return manifest;
  } catch (error) {
    if (error instanceof ManifestError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

/** Throws UsageError for a tool that the manifest does not have. */
function toolsOf(
  { tools }: Manifest,
  name: string | undefined,
  path: string,
): readonly ToolEntry[] {
  if (name === undefined) return [...tools.values()];
  const tool = tools.get(name);
  if (tool !== undefined) return [tool];
  const names = [...tools.keys()].join(", ") || "none";
  throw new UsageError(`${path} has no tool "${name}"; its tools: ${names}`);
}

function bodyOf({ lists, maxConnections, refusal, ...facts }: Explanation): object {
  return {
    ...facts,
    ...(refusal && { not_served: refusal.publicReason }),
    ...(lists.length > 0 && {
      lists: lists.map(({ from, rules }) => ({
        from,
        rules: rules.map(({ text, host, ports, allowsPrivate, allowsAnySni, requests }) => ({
          ...{ entry: text, host, ports },
          ...{ private: allowsPrivate, sni: allowsAnySni ? "any" : "exact" },
          ...(requests && { ...requests, credential: requests.credential?.name }),
        })),
      })),
      max_connections: maxConnections,
    }),
  };
}
