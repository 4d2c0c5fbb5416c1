/**
 * `environment.json`: what an environment is, written last. Its time of change says when a worker
 * last used the environment.
 */
import { open } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { runtimes } from "../manifest/manifest.ts";

/** The file in each environment. An environment without it is not whole. */
export const factsFile = "environment.json";

const schema = z.object({
  runtime: z.enum(runtimes),
  title: z.string(),
  /** Of the packages that the manifest and its files name. */
  names: z.array(z.string()),
  /** Program and version that installed it. */
  installer: z.string(),
  interpreter: z.string(),
  sizeBytes: z.number(),
  madeAt: z.string(),
  tookMs: z.number(),
});

export type EnvironmentFacts = z.infer<typeof schema>;

/** Writes the file, and waits until it is on the disk. */
export async function writeFacts(directory: string, facts: EnvironmentFacts): Promise<void> {
  await using file = await open(join(directory, factsFile), "wx", 0o644);
  await file.writeFile(`${JSON.stringify(facts, undefined, 2)}\n`);
  await file.sync();
}

/** The facts of an environment, and when it was last used; undefined when it is not whole. */
export async function readFacts(
  directory: string,
): Promise<{ facts: EnvironmentFacts; usedAtMs: number } | undefined> {
  try {
    await using file = await open(join(directory, factsFile));
    const facts = schema.parse(JSON.parse(await file.readFile("utf8")));
    return { facts, usedAtMs: (await file.stat()).mtimeMs };
  } catch {
    return undefined;
  }
}
