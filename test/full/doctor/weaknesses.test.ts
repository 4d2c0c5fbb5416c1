/**
 * The doctor against copies of this project with a known weakness each: it has to name every one.
 *
 * @module-tag full
 */
import { execFile } from "node:child_process";
import { cp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Compiler, buildPaths, nativeParts } from "../../../scripts/native-parts.ts";
import { reachableDirectory } from "../../support/workers/rig.ts";
import { type Edit, type PlantedWeakness, weaknesses } from "./weaknesses.ts";

const project = fileURLToPath(new URL("../../../", import.meta.url));
const run = promisify(execFile);
/** Whether a build is for the machine of the test. */
const isOwn = (path: string) => /(x64|x86_64)\./.test(path) === (process.arch === "x64");
/** What a run of attacks loads. */
const sources = ["worker", "tool-runner", "attacks", "harness", "test/support", "package.json"];
/** Milliseconds for one copy on a busy machine, many times what it takes. */
const timeoutMs = 120_000;

interface Said {
  readonly profiles: readonly { readonly start: string; readonly evidence: string }[];
  readonly attacks: readonly {
    readonly id: string;
    readonly start: string;
    readonly verdict: string;
    readonly evidence: string;
  }[];
  /** What the doctor says without attacks, and why a worker does not start. */
  readonly refusal: string;
}

let compiler: Compiler;
beforeAll(async () => void (compiler = await Compiler.install()), timeoutMs);
afterAll(() => compiler[Symbol.asyncDispose]());

describe("the doctor names it that", () => {
  test.concurrent.each(weaknesses)("$what", { timeout: timeoutMs }, async (weakness) => {
    await using copy = await weakenedCopy(weakness.edits);
    const said = await attacked(copy.path, weakness);
    expect(told(said, weakness)).toEqual(weakness.named);
  });
});

/** What was said, in the form of what has to be said; all of it where that is something else. */
function told({ profiles, attacks, refusal }: Said, { named }: PlantedWeakness): unknown {
  if ("refusal" in named || "finding" in named)
    return refusal.includes(Object.values(named)[0] ?? "") ? named : { refusal };
  if ("use" in named) {
    const use = profiles.find(({ start }) => start === named.start)?.evidence ?? "";
    return use.includes(named.use) ? named : { ...named, use, refusal };
  }
  const start = named.start ?? "cold";
  const rows = attacks.filter((row) => row.start === start);
  const unseen = rows.filter(({ verdict }) => verdict !== "not-held");
  const isAll = named.attacks.every((id) => rows.some((row) => row.id === id));
  return isAll && unseen.length === 0 ? named : { unseen, profiles, refusal };
}

/** Runs the attacks that are to name it, as `doctor --attack` does, with the copy's own worker. */
async function attacked(copy: string, { named }: PlantedWeakness): Promise<Said> {
  const ids = "attacks" in named ? named.attacks : ["read_host_secret"];
  const start = "start" in named ? named.start : undefined;
  const options = [
    ...["--profile", ("profile" in named ? named.profile : undefined) ?? "restrictive"],
    ...["--start", start === "import" ? "template" : (start ?? "cold")],
  ];
  const argv =
    "finding" in named
      ? [join(copy, "worker/main.ts"), "doctor"]
      : [join(copy, "test/support/doctor/attack-run.ts"), "--json", ...options, ...ids];
  try {
    const { stdout } = await run(process.execPath, argv, {
      cwd: copy,
      timeout: timeoutMs,
      maxBuffer: 2 ** 26,
    });
    if ("finding" in named)
      return { profiles: [], attacks: [], refusal: stdout.replace(/\s+/g, " ") };
    return { ...(JSON.parse(stdout) as Omit<Said, "refusal">), refusal: "" };
  } catch (error) {
    return { profiles: [], attacks: [], refusal: String((error as { stderr?: string }).stderr) };
  }
}

async function weakenedCopy(
  edits: readonly Edit[],
): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await reachableDirectory();
  for (const source of sources)
    await cp(join(project, source), join(path, source), { recursive: true });
  await symlink(join(project, "node_modules"), join(path, "node_modules"));
  for (const { file, from, to } of edits) {
    const text = await readFile(join(path, file), "utf8");
    const places = text.split(from).length - 1;
    if (places !== 1)
      throw new Error(
        `${file} has ${places} places, not one, where a weakness is planted: ${from}`,
      );
    await writeFile(
      join(path, file),
      text.replace(from, () => to),
    );
  }
  // Code of these folders is loaded as it was built.
  for (const part of Object.values(nativeParts))
    if (edits.some(({ file }) => file.startsWith(`${part.directory}/native/`)))
      await compiler.build(part, path, path, buildPaths(part).filter(isOwn));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
