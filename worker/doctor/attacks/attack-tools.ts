/**
 * Lays the attacks out as tools of a worker: programs, and a manifest with an entry for each start.
 */
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Catalog } from "../../gateway/catalog.ts";
import { pythonStubs } from "../../gateway/stubs/python.ts";
import { type StartKind, startKinds } from "../../protocol/execution.ts";
import type { JsonObject } from "../../support/json/json.ts";
import type { Attack, Target } from "./attack.ts";
import { type AttackStart, attackStarts, isMade, startOfCall } from "./attack-starts.ts";
import { withPythonNames } from "../program.ts";

/** The harmless tool, below `attacks/harmless/`. */
export const usefulTool = "useful_work";
/** The function of the victim's program. */
const victimFunction = "victim";

/** The victim's program below `attacks/harmless/`; it is copied into the module of its attack. */
function victimProgram({ group }: Attack): string {
  if (group === "egress") return "listening_victim";
  return group === "gateway" ? "calling_victim" : "victim";
}

/** The module of the tools that attacks on gateways call. */
const calledModule = "called";
/** Those tools: all but one allow programs, and all but one are listed. */
const calledTools = {
  "called.listed": { function: "called", allowed_callers: ["programmatic"] },
  "called.unlisted": { function: "called", allowed_callers: ["programmatic"] },
  "called.direct": { function: "called" },
  "called.stays": { function: "stays", allowed_callers: ["programmatic"] },
  "called.forwards": {
    function: "forwards",
    allowed_callers: ["programmatic"],
    gateway: { tools: ["cold.recurse_by_calls"], max_depth: 5 },
  },
} as const;
const gateway = { tools: ["called.listed", "called.direct", "called.stays"] } as const;

/** In the entries of attacks that are programs. */
const programEntry = { runtime: "code", languages: ["python"] } as const;

/** Runtimes of the attacks' tools. Those of `node` become the Python programs. */
export type AttackRuntime = "python" | "node";

/** Options of {@link layOutTools}. */
export interface Layout {
  readonly runtime: AttackRuntime;
  /** The project's `attacks/`. */
  readonly programsDir: string;
  readonly attacks: readonly Attack[];
  /** The profile of every tool. */
  readonly profile: string;
  /** Target of attacks that run at import, and of lists of hosts. */
  readonly importTarget: Target;
}

/** The programs of one run. */
export interface Arena {
  /** Mounted in baselines: `tools/` and `baseline/`. */
  readonly directory: string;
  readonly toolsDir: string;
  readonly manifestPath: string;
  /** The code of attacks that are programs, by id. */
  readonly programs: ReadonlyMap<string, string>;
}

/** Copies the programs and writes the manifest into a new directory. */
export async function layOutTools(directory: string, layout: Layout): Promise<Arena> {
  const { programsDir, attacks, importTarget } = layout;
  const toolsDir = join(directory, "tools");
  const manifestPath = join(directory, "manifest.yaml");
  const recursive = { recursive: true };
  await mkdir(toolsDir, recursive);
  await cp(join(programsDir, "baseline"), join(directory, "baseline"), recursive);
  await cp(join(programsDir, "support"), join(toolsDir, "support"), recursive);
  const program = (name: string): Promise<string> => readFile(join(programsDir, name), "utf8");
  const lay = async (module: string, ...texts: readonly string[]): Promise<void> => {
    await writeFile(join(toolsDir, `${module}.py`), texts.join("\n\n"));
    if (layout.runtime === "node")
      await writeFile(join(toolsDir, fileOf(module, "node")), becoming(module));
  };

  for (const module of [usefulTool, calledModule])
    await lay(module, await program(`harmless/${module}.py`));
  // The source of an isolated tool.
  await lay("victims_secret", `TOKEN = "${importTarget.token}"\n`);
  await lay("hostile_stubs", hostileStubs(await program("support/hostile_texts.json")));
  const programs = new Map<string, string>();
  for (const attack of attacks) {
    const source = await program(`${attack.id}.py`);
    if (attack.isProgram) programs.set(attack.id, `${source}\n__out = attack(inputs["target"])\n`);
    await lay(attack.id, source);
    if (attack.needsVictim)
      await lay(
        ...([moduleOf(attack, "cold"), source] as const),
        await program(`harmless/${victimProgram(attack)}.py`),
        eitherFunction,
      );
    if (isMade(attack, "import"))
      await lay(moduleOf(attack, "import"), source, madeByImport(importTarget));
  }
  // JSON is YAML.
  await writeFile(manifestPath, JSON.stringify(manifestOf(layout)));
  return { directory, toolsDir, manifestPath, programs };
}

/** Name of a program in the manifest. Only the useful tool has an entry for `auto`. */
export function toolName(start: AttackStart | "auto", id: string): string {
  return `${start}.${id}`;
}

/** Source with the stubs of tools, each of which has one of these texts in one place. */
function hostileStubs(document: string): string {
  const cases = (JSON.parse(document) as string[]).flatMap((text) => {
    const object = (properties: JsonObject) => ({ parameters: { type: "object", properties } });
    return Object.entries({
      description: { description: text },
      name: object({ [text]: {} }),
      value: object({ value: { const: text } }),
    }).map(([place, entry]) => {
      const { tools } = new Catalog([{ id: "called:hostile", ...entry }]);
      return { place, text, stubs: pythonStubs(tools) };
    });
  });
  // Lists, objects and strings of JSON are those of Python.
  return `STUBS = ${JSON.stringify(cases)}\n`;
}

/** One tool for both calls, so that attacker and victim share a template. */
const either = "attack_or_victim";
const eitherFunction = `def ${either}(ctx, target=None, token=None):
    return ${victimFunction}(token, ctx) if target is None else attack(target)
`;

/** Source that runs the attack at import; its call returns the answer. */
function madeByImport(target: Target): string {
  const asText = JSON.stringify(JSON.stringify(withPythonNames(target)));
  return `import json

_ANSWER = attack(json.loads(${asText}))


def attack(target):
    return _ANSWER
`;
}

/** Source of a Node tool that becomes this module, or has its answer from the import. */
function becoming(module: string): string {
  const name = JSON.stringify(module);
  const tools = ["attack", either, "called", "forwards", "stays"].map(
    (tool) => `export const ${tool} = becomes(${name}, "${tool}");`,
  );
  const ahead = `export const attack = answersAhead(${name});`;
  const imports = `import { answersAhead, becomes } from "./support/becoming.js";`;
  return [imports, ...(module.startsWith(importPrefix) ? [ahead] : tools)].join("\n");
}

/** A module as the manifest names it. */
function fileOf(module: string, runtime: AttackRuntime): string {
  return runtime === "node" ? `${module}.mjs` : module;
}

const importPrefix = "import_";

function moduleOf({ id, needsVictim }: Attack, start: AttackStart): string {
  if (start === "import") return `${importPrefix}${id}`;
  return needsVictim ? `${id}_or_victim` : id;
}

function manifestOf({ attacks, profile, importTarget, runtime }: Layout): object {
  const common = { runtime, sandbox_profile: profile };
  const useful = (["auto", ...startKinds] as const).map((start) => {
    const entry = {
      ...common,
      module: fileOf(usefulTool, runtime),
      function: "attack",
      ...startModesOf(start),
    };
    return [toolName(start, usefulTool), entry] as const;
  });
  const tools = attackStarts.flatMap((start) =>
    attacks
      .filter((attack) => isMade(attack, start))
      .map((attack) => {
        const name = attack.needsVictim && start !== "import" ? either : "attack";
        const callable = { module: fileOf(moduleOf(attack, start), runtime), function: name };
        const entry = {
          ...(attack.isProgram ? { ...common, ...programEntry } : { ...common, ...callable }),
          ...startModesOf(startOfCall(start)),
          ...(attack.group === "egress" && { network: listOf(importTarget) }),
          ...(attack.group === "gateway" && { gateway }),
          ...attack.manifest,
        };
        return [toolName(start, attack.id), entry] as const;
      }),
  );
  const called = Object.entries(calledTools).map(
    ([name, entry]) =>
      [
        name,
        { ...common, module: fileOf(calledModule, runtime), start: "cold", ...entry },
      ] as const,
  );
  const entries: readonly (readonly [string, object])[] = [...useful, ...called, ...tools];
  return { version: 1, tools: Object.fromEntries(entries) };
}

/**
 * What tools of the group `egress` may reach. Listeners for the second rule stand inside as well:
 * where none do, nothing has to be refused.
 */
function listOf({
  listedName,
  unlistedName,
  rebindingName,
  metadataName,
  ...rest
}: Target): object {
  const { listedPort, datagramPort, loopbackPort, maxConnections } = rest;
  return {
    max_connections: maxConnections,
    allow: [
      { host: listedName, ports: [listedPort, datagramPort], private: true },
      // It has no public address.
      { host: listedName, ports: [loopbackPort] },
      { host: rebindingName, ports: [loopbackPort] },
      { host: metadataName, ports: [80] },
      { host: unlistedName, ports: [loopbackPort, 80, 443] },
    ],
  };
}

/** One idle sandbox for the call, and one for the victim's. */
function startModesOf(start: StartKind | "auto"): object {
  return start === "cold" ? { start } : { start, warm: { min: 1, max: 2 } };
}
