/**
 * `harness tools`: which tools of a manifest are served, which are not and why; by this host, or by
 * the workers of a broker.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { openFoundation } from "../../worker/wiring/foundation.ts";
import { createHost } from "../../worker/wiring/host.ts";
import {
  type Config,
  ConfigError,
  type Environment,
  readConfig,
} from "../../worker/config/config.ts";
import { type Manifest, ManifestError } from "../../worker/manifest/manifest.ts";
import { parseManifest } from "../../worker/manifest/parse.ts";
import { listOf, mapOf } from "../../worker/protocol/discovery/expand-schema.ts";
import { wordsOf } from "../../worker/protocol/discovery/schema-words.ts";
import { invokeTopic } from "../../worker/protocol/topics.ts";
import { ProfilesError } from "../../worker/sandbox/profiles-file.ts";
import { SandboxError } from "../../worker/sandbox/sandbox.ts";
import { type JsonObject, isJsonObject } from "../../worker/support/json/json.ts";
import { createLogger } from "../../worker/telemetry/logger.ts";
import { showLogLine } from "../../worker/telemetry/pretty-log.ts";
import { Agent, defaultAgentName } from "../agent.ts";
import { DiscoveryClient, type ToolFacts } from "../discovery/discovery-client.ts";
import { openCommandBroker } from "../options/broker-option.ts";
import { CommandError, type Context, UsageError, exit, withCauses } from "../context.ts";
import { packageSettings } from "../packages/variables.ts";
import { findPrograms } from "../prerequisites.ts";
import { printable } from "../invoke/screen.ts";
import { createPassableDirectory } from "../temporary.ts";
import { layoutOf, usualToolsDir } from "../tools-layout.ts";
import { readProfiles } from "./profiles.ts";
import type { ToolContext } from "./local-foundation.ts";

/** The command line. */
export interface ToolsOptions {
  /** Directory of the manifest; else the environment's, or the usual one. */
  readonly tools?: string;
  /** With `broker`: names to ask for in place of the manifest's. */
  readonly tool: readonly string[];
  readonly namespace: string;
  /** A running broker, whose workers are asked. */
  readonly broker?: string;
  /** With `broker`: seconds for which broadcasts name the tools, in place of the manifest. */
  readonly listen?: number;
  /** Seconds for an answer. */
  readonly timeout: number;
  readonly json?: boolean;
}

/** What is known of a tool. */
interface ToolRow {
  readonly tool: string;
  readonly state: "served" | "not served" | "no answer";
  readonly description?: string | undefined;
  readonly reason?: string | undefined;
  /** JSON Schema of the arguments; undefined where no worker says it. */
  readonly parameters?: JsonObject | undefined;
}

/** Lists them. Returns 0 when all are served, else 1. */
export async function listTools(options: ToolsOptions, context: Context): Promise<number> {
  const environment = await toolEnvironment(options, context.environment);
  const rows =
    options.broker === undefined
      ? await servedHere(environment, options, context)
      : await servedThere(options.broker, environment, options, context);
  show(rows, options, context);
  return rows.every(({ state }) => state === "served") ? exit.success : exit.failure;
}

/** The environment with the places of manifest and tools. */
async function toolEnvironment({ tools }: ToolsOptions, own: Environment): Promise<Environment> {
  const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== ""));
  if (tools === undefined && given["MANIFEST_PATH"] !== undefined) return given;
  const layout = await layoutOf(tools ?? (await usualToolsDir()));
  return {
    ...given,
    MANIFEST_PATH: layout.manifestPath,
    TOOLS_PYTHON_DIR: layout.pythonDir,
    TOOLS_NODE_DIR: layout.nodeDir,
    TOOLS_EXECUTABLE_DIR: layout.executableDir,
  };
}

/**
 * What a worker with this environment would serve on this host: opens what it opens, and connects
 * to nobody.
 */
async function servedHere(
  environment: Environment,
  { namespace }: ToolsOptions,
  context: ToolContext,
): Promise<readonly ToolRow[]> {
  const programs = await findPrograms(environment);
  await using home = await createPassableDirectory("str-tools-");
  const isBrokerSet = ["AMQP_URL", "SOLACE_HOST", "SOLACE_BROKER_URL"].some(
    (name) => environment[name] ?? environment[`${name}_FILE`],
  );
  const settings = {
    SANDBOX_BWRAP_BIN: programs.bwrapBin,
    SANDBOX_PYTHON_BIN: programs.pythonBin,
    ...environment,
    ...packageSettings(environment),
    ...(!isBrokerSet && { DEV_BROKER_HOST: "nobody" }),
    SAM_NAMESPACE: namespace,
    SANDBOX_WORK_DIR: join(home.path, "work"),
    SANDBOX_MIN_FREE_DISK_MB: "0",
    ARTIFACT_SERVICE_TYPE: "memory",
    // An empty variable is unset.
    AUDIT_LOG: "",
    AUDIT_REQUIRED: "",
  };
  // Why a tool is not served stands in its row.
  const write = (line: string): void => showLogLine(line.trimEnd(), context.err);
  const host = createHost(
    createLogger("error", { write }),
    context.environment,
    context.preparations,
  );
  try {
    const config: Config = readConfig(settings);
    await using foundation = await openFoundation(config, host, context.signal, {
      installs: "never",
    });
    return rowsOf(foundation.catalog.manifest);
  } catch (error) {
    throw translated(error);
  }
}

function rowsOf({ tools, unavailable }: Manifest): readonly ToolRow[] {
  return [
    ...Array.from(tools.values(), ({ name, description }) => {
      return { tool: name, state: "served", description } as const;
    }),
    ...Array.from(unavailable, ([tool, { reason, entry }]) => {
      return { tool, state: "not served", description: entry?.description, reason } as const;
    }),
  ];
}

/** What the workers of a broker answer for each tool. */
async function servedThere(
  broker: string,
  environment: Environment,
  { namespace, tool, listen, timeout }: ToolsOptions,
  context: Context,
): Promise<readonly ToolRow[]> {
  const opened = await openCommandBroker(broker, { namespace, name: defaultAgentName }, context);
  await using agent = await Agent.on(opened.broker, { namespace }, context.signal);
  const asking = { namespace, agent: defaultAgentName };
  await using discovery = await DiscoveryClient.on(opened.broker, asking, context.signal);
  if (listen !== undefined) await context.clock.sleep(listen * 1000, context.signal);
  const heard = listen === undefined ? [] : discovery.heard;
  const names = [...new Set([...tool, ...heard])].sort();
  const known =
    names.length > 0 || listen !== undefined
      ? names.map((name) => ({ tool: name, description: undefined }))
      : rowsOf(await readManifest(environment));
  const over = AbortSignal.timeout(Math.ceil(timeout * 1000));
  return await Promise.all(
    known.map(async ({ tool, description }): Promise<ToolRow> => {
      const row = { tool, description };
      try {
        const signal = AbortSignal.any([context.signal, over]);
        const described = discovery.ask(tool, {}, signal).catch(() => undefined);
        const answer = await agent.ask(tool, signal);
        const isRefused = answer.kind === "error" && answer.code === "TOOL_NOT_AVAILABLE";
        if (!isRefused) return { ...row, state: "served", ...shown(await described) };
        return { ...row, state: "not served", reason: answer.message };
      } catch (error) {
        context.signal.throwIfAborted();
        if (!over.aborted) throw error;
        const reason = `no worker answers on ${invokeTopic(namespace, tool)}`;
        return { ...row, state: "no answer", reason };
      }
    }),
  );
}

function shown(facts: ToolFacts | undefined): Partial<ToolRow> {
  if (facts === undefined) return {};
  const { description, parameters, schemas } = facts;
  const { parameters: full } = schemas;
  const schema = isJsonObject(full) ? full : parameters;
  return {
    ...(description !== undefined && { description }),
    ...(schema && { parameters: schema }),
  };
}

async function readManifest(environment: Environment): Promise<Manifest> {
  const path = environment["MANIFEST_PATH"] ?? "";
  const profileNames = [...(await readProfiles(environment)).keys()];
  const bytes = await readFile(path).catch((error: unknown) => {
    throw new UsageError(`${path} cannot be read; name the tools with --tool`, { cause: error });
  });
  try {
    return parseManifest(bytes, { path, profileNames }).manifest;
  } catch (error) {
    throw translated(error);
  }
}

/** An error that is told without a stack, if it is one of those that opening foresees. */
function translated(error: unknown): unknown {
  const isInput = [ConfigError, ManifestError, ProfilesError].some((kind) => error instanceof kind);
  const text = withCauses(error).join("\n  because: ");
  if (isInput) return new UsageError(text, { cause: error });
  return error instanceof SandboxError ? new CommandError(text, { cause: error }) : error;
}

function show(
  rows: readonly ToolRow[],
  { json: isJson = false, listen }: ToolsOptions,
  { out }: Context,
): void {
  const width = Math.max(0, ...rows.map(({ tool }) => tool.length));
  const stateWidth = Math.max(0, ...rows.map(({ state }) => state.length));
  for (const row of rows) {
    if (isJson) {
      out.line(printable(JSON.stringify(row)));
      continue;
    }
    const { tool, state, description, reason } = row;
    const colour = state === "served" ? "green" : "yellow";
    const painted = out.paint(colour, state.padEnd(stateWidth));
    const text = [reason, description].filter((part) => part !== undefined).join(". ");
    out.line(`${tool.padEnd(width)}  ${painted}  ${printable(text)}`.trimEnd());
    for (const line of parameterLines(row)) out.line(printable(`${" ".repeat(width)}  ${line}`));
  }
  if (rows.length > 0 || isJson) return;
  const isHeard = listen !== undefined;
  out.line(isHeard ? `No worker told of a tool in ${listen} s.` : "The manifest has no tools.");
}

/** `name: text, required. What it is.` */
function parameterLines({ parameters = {} }: ToolRow): readonly string[] {
  const { properties, required } = parameters;
  return Object.entries(mapOf(properties)).map(([name, schema]) => {
    const { description } = mapOf(schema);
    const need = listOf(required).includes(name) ? ", required" : "";
    const text = typeof description === "string" ? `. ${description}` : "";
    return `${name}: ${wordsOf(schema)}${need}${text}`;
  });
}
