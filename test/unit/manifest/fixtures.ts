/**
 * Manifests for tests.
 */
import type { Manifest, PackageSet, ToolEntry } from "../../../worker/manifest/manifest.ts";
import {
  type ParsedManifest,
  type ParseOptions,
  parseManifest,
} from "../../../worker/manifest/parse.ts";

export const profileNames = ["restrictive", "standard", "permissive"];

/** Parses a text under the name `m.yaml`. */
export function parse(text: string, options: Partial<ParseOptions> = {}): ParsedManifest {
  return parseManifest(Buffer.from(text), { path: "m.yaml", profileNames, ...options });
}

/** A manifest text with one small tool per name. */
export function textOf(...names: readonly string[]): string {
  const tools = names.map((name) => `  ${name}: {module: tools, function: run}\n`);
  return `version: 1\ntools:${names.length === 0 ? " {}" : ""}\n${tools.join("")}`;
}

/** A tool that says no more than it must. */
export function tool(name: string, fields: Partial<ToolEntry> = {}): ToolEntry {
  return {
    name,
    runtime: "python",
    module: "tools",
    callable: { kind: "function", name: "run" },
    packages: undefined,
    interpreter: undefined,
    description: undefined,
    described: {},
    argumentRules: { validate: true, coerce: false },
    timeoutSeconds: undefined,
    profile: undefined,
    limits: {},
    network: undefined,
    isolate: false,
    mounts: [],
    devices: [],
    idempotent: true,
    queue: "default",
    start: "auto",
    warm: { min: 0, max: 32 },
    env: [],
    catalog: {
      allowedCallers: new Set(["direct"]),
      namespace: undefined,
      tags: [],
      examples: [],
    },
    gateway: undefined,
    ...fields,
  };
}

/** A manifest of these tools. */
export function manifest(...tools: readonly ToolEntry[]): Manifest {
  return {
    revision: "",
    tools: new Map(tools.map((entry) => [entry.name, entry])),
    unavailable: new Map(),
  };
}

/** The packages of a tool that requires these, in normal form. */
export function packages(...requirements: readonly string[]): PackageSet {
  return { requirements, requirementsFile: undefined, lockfile: undefined, runsScripts: false };
}
