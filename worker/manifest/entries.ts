/**
 * Tools of a manifest's entry whose fields are as they should be.
 */
import type { Credential } from "../protocol/credential.ts";
import { type Network, toNetwork } from "../protocol/network-rules.ts";
import { toLimits } from "../protocol/operator-fields.ts";
import { defaultQueue } from "../protocol/queue-names.ts";
import { programLanguages } from "../protocol/tool-calls/program.ts";
import { toGivenDescription } from "./fields/described.ts";
import { toResourceLimits } from "./fields/executable.ts";
import { toCatalogFields, toGatewayGrant } from "./fields/gateway.ts";
import { toMount } from "./fields/host.ts";
import { toPackageSet } from "./fields/packages.ts";
import { programDescription, programParameters, programProfile } from "./fields/program.ts";
import { toWarmBounds } from "./fields/warm.ts";
import type { ToolCallable, ToolEntry } from "./manifest.ts";
import { runtimeOf } from "./programs.ts";
import type { ToolFields } from "./schema.ts";

/** Each tool that an entry names in `tools`, or itself. Its credentials are among the given. */
export function toEntries(
  name: string,
  fields: ToolFields,
  credentials: ReadonlyMap<string, Credential>,
): readonly ToolEntry[] {
  const network = fields.network ? toNetwork(fields.network, credentials) : undefined;
  const provided = fields.tools ?? [];
  if (provided.length === 0) return [toEntry(name, fields, network, undefined)];
  return provided.map((tool) => toEntry(tool, fields, network, tool));
}

function toEntry(
  name: string,
  fields: ToolFields,
  network: Network | undefined,
  provides: string | undefined,
): ToolEntry {
  return {
    name,
    ...toCode(name, fields, provides),
    argumentRules: { validate: fields.validate ?? true, coerce: fields.coerce ?? false },
    timeoutSeconds: fields.timeout_seconds ?? undefined,
    profile: fields.sandbox_profile ?? (isForPrograms(fields) ? programProfile : undefined),
    limits: { ...toResourceLimits(fields), ...toLimits(fields.limits) },
    network,
    isolate: fields.isolate ?? false,
    mounts: (fields.mounts ?? []).map(toMount),
    devices: [...new Set(fields.devices ?? [])],
    idempotent: fields.idempotent ?? true,
    queue: fields.queue ?? defaultQueue,
    start: fields.start ?? "auto",
    warm: toWarmBounds(fields.warm),
    env: [...new Set(fields.env ?? [])],
    catalog: toCatalogFields(fields),
    gateway: toGatewayGrant(fields),
  };
}

type ExecutableFields = Extract<ToolFields, { executable: string }>;
type ProgramFields = Extract<ToolFields, { runtime: "code" }>;
type ModuleFields = Exclude<ToolFields, ExecutableFields | ProgramFields>;

/** What runs, and its description. */
function toCode(name: string, fields: ToolFields, provides: string | undefined) {
  if (isForPrograms(fields)) return toPrograms(fields);
  return {
    ...("executable" in fields ? toExecutable(name, fields) : toModule(fields, provides)),
    description: provides === undefined ? (fields.description ?? undefined) : undefined,
    described: provides === undefined ? toGivenDescription(fields) : {},
  };
}

function isForPrograms(fields: ToolFields): fields is ProgramFields {
  return fields.runtime === "code";
}

function toPrograms(fields: ProgramFields) {
  const languages = [...new Set(fields.languages ?? programLanguages)];
  const runtime = runtimeOf(languages[0] ?? "python");
  return {
    runtime,
    module: "",
    callable: { kind: "code" as const, name: "" },
    languages,
    packages: toPackageSet(runtime, fields),
    interpreter: fields.python ?? fields.node ?? undefined,
    description: fields.description ?? programDescription,
    described: { ...toGivenDescription(fields), parameters: programParameters(languages) },
  };
}

function toExecutable(tool: string, { executable, tool_dir: directory }: ExecutableFields) {
  return {
    runtime: "executable" as const,
    module: executable,
    ...(typeof directory === "string" && { toolDir: directory }),
    callable: { kind: "program" as const, name: tool },
    packages: undefined,
    interpreter: undefined,
  };
}

function toModule(fields: ModuleFields, provides: string | undefined) {
  const runtime = fields.runtime ?? ("python" as const);
  return {
    runtime,
    module: fields.module,
    callable: toCallable(fields, provides),
    packages: toPackageSet(runtime, fields),
    interpreter: fields.python ?? fields.node ?? undefined,
  };
}

/** The schema guarantees one of them; a class has precedence. */
function toCallable(
  { function: name, class_name: className }: ModuleFields,
  provides: string | undefined,
): ToolCallable {
  if (typeof className !== "string") return { kind: "function", name: name ?? "" };
  if (provides !== undefined) return { kind: "provider", name: className, provides };
  return { kind: "class", name: className };
}
