/**
 * The attacks as tools of a worker: programs, and a manifest with each of them once for every profile.
 */
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Attack } from "./attack.ts";

/** Tools that are no attacks, below `attacks/plants/`: a call that others look for, and one that does nothing wrong. */
export const neighbourTool = "neighbour";
export const usefulTool = "useful_work";

/** Where the programs of one run lie. */
export interface Stage {
  /** What controls see: `tools/` and `control/`. */
  readonly directory: string;
  readonly toolsDir: string;
  readonly manifestPath: string;
}

/**
 * Lays the programs out in a new directory.
 *
 * @param programsDir the project's `attacks/`
 * @param token what stands in the source of a tool that only itself may read
 */
export async function layOutTools(
  directory: string,
  programsDir: string,
  attacks: readonly Attack[],
  profiles: readonly string[],
  token: string,
): Promise<Stage> {
  const toolsDir = join(directory, "tools");
  const manifestPath = join(directory, "manifest.yaml");
  const recursive = { recursive: true };
  await mkdir(toolsDir, recursive);
  await cp(join(programsDir, "control"), join(directory, "control"), recursive);
  await cp(join(programsDir, "support"), join(toolsDir, "support"), recursive);
  const plants = [neighbourTool, usefulTool].map((name) => join("plants", name));
  for (const path of [...attacks.map(({ id }) => id), ...plants])
    await cp(join(programsDir, `${path}.py`), join(toolsDir, `${path.split("/").at(-1)}.py`));
  await writeFile(join(toolsDir, "neighbours_secret.py"), `TOKEN = "${token}"\n`);
  // JSON is YAML.
  await writeFile(manifestPath, JSON.stringify(manifestOf(attacks, profiles)));
  return { directory, toolsDir, manifestPath };
}

/** What a program is called in the manifest. */
export function toolName(profile: string, id: string): string {
  return `${profile}.${id}`;
}

function manifestOf(attacks: readonly Attack[], profiles: readonly string[]): object {
  const tools = profiles.flatMap((profile) => {
    const entry = (module: string, name: string): object => {
      return { runtime: "python", module, function: name, sandbox_profile: profile };
    };
    return [
      [toolName(profile, neighbourTool), entry(neighbourTool, "neighbour")] as const,
      [toolName(profile, usefulTool), entry(usefulTool, "attack")] as const,
      ...attacks.map(({ id, manifest }) => {
        return [toolName(profile, id), { ...entry(id, "attack"), ...manifest }] as const;
      }),
    ];
  });
  return { version: 1, tools: Object.fromEntries(tools) };
}
