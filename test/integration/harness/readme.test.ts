/**
 * The commands of the README do what it says, in its order, in a directory that has nothing but
 * this checkout's programs.
 *
 * @module-tag full
 */
import { existsSync, readFileSync } from "node:fs";
import { mkdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPassableDirectory } from "../../../harness/temporary.ts";
import { CliProcess, type CliResult, runCliProcess } from "./cli-process.ts";

const timeoutMs = 120_000;
const checkout = join(import.meta.dirname, "../../..");
const readme = readFileSync(join(checkout, "README.md"), "utf8");

const fenced = [...readme.matchAll(/^```(\w*)\n([^]*?)^```$/gm)];
const blocks = (language: string): readonly string[] =>
  fenced.flatMap(([, name, text = ""]) => (name === language ? [text] : []));

/** One line each. */
const commands = blocks("sh").flatMap((text) =>
  text
    .replaceAll("\\\n", "")
    .replaceAll(/ +#.*$/gm, "")
    .trim()
    .split("\n"),
);

/** What makes tools, and serves and calls them. */
const ours = commands.filter((command) => /^harness (?!demo)/.test(command));

let home: Awaited<ReturnType<typeof createPassableDirectory>>;
let dev: CliProcess;
/** The usual port may be taken on this machine. */
let port: string;

const environment = (): Record<string, string> => ({
  HOME: home.path,
  PATH: `${join(home.path, "bin")}:${process.env["PATH"]}`,
});
const start = (command: string): CliProcess =>
  new CliProcess(["-c", `exec ${command}`], environment(), { cwd: home.path, command: ["sh"] });
const type = (command: string): Promise<CliResult> =>
  runCliProcess(["-c", command], environment(), { cwd: home.path, command: ["sh"] });

beforeAll(async () => {
  home = await createPassableDirectory("str-readme-test-");
  await mkdir(join(home.path, "bin"));
  for (const name of ["harness", "str-worker"]) {
    await symlink(join(checkout, "bin", `${name}.mjs`), join(home.path, "bin", name));
  }
});
afterAll(async () => {
  dev.child.kill("SIGINT");
  await dev.finished;
  await home[Symbol.asyncDispose]();
});

describe("the commands of the README", { timeout: timeoutMs }, () => {
  test("are no others than those below, the demo and these tests", () => {
    expect(commands.filter((command) => !ours.includes(command))).toEqual([
      expect.stringMatching(/^npm install --global \.\/secure-tool-runtime-[\d.]+\.tgz$/),
      "harness demo",
      "npm run demo",
      "npm test",
      expect.stringMatching(/^SAM_NAMESPACE=.* str-worker --check$/),
    ]);
    expect(ours).toHaveLength(5);
  });

  test("make tools and serve and call them", async () => {
    const [newPython = "", serve = "", callPython = "", newNode = "", callNode = ""] = ours;
    expect(await type(newPython)).toMatchObject({ exitCode: 0 });
    dev = start(`${serve} --port 0`);
    [, port = ""] = await dev.said("stdout", /DevBroker listens on 127\.0\.0\.1:(\d+)/);
    await dev.said("stdout", /worker ready/);
    const [shown = ""] = blocks("").filter((text) => text.startsWith("status: "));
    const called = await type(`${callPython} --port ${port} 2>&1`);
    expect(called).toMatchObject({ exitCode: 0 });
    expect(called.stdout.split("\n").sort()).toEqual(
      [...shown.split("\n"), `Calling at the DevBroker that runs on 127.0.0.1:${port}.`].sort(),
    );

    expect(await type(newNode)).toMatchObject({ exitCode: 0 });
    expect(await type(`${callNode} --port ${port}`)).toMatchObject({
      exitCode: 0,
      stdout: called.stdout.slice(called.stdout.indexOf("{"), called.stdout.indexOf("}\n") + 2),
    });
    for (const [, path = ""] of readme.matchAll(/`(tools\/[\w/.-]+)`/g)) {
      expect({ path, exists: existsSync(join(home.path, path)) }).toEqual({ path, exists: true });
    }
    const manifest = await readFile(join(home.path, "tools/manifest.yaml"), "utf8");
    expect(manifest).toContain(blocks("yaml")[0]);
  });

  test("check a configuration", async () => {
    const checked = await type(`HEALTH_PORT=0 ${commands.at(-1)}`);
    expect(checked).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(checked.stdout)).toMatchObject({
      topics: ["count_words", "count-words"].map((tool) => expect.stringContaining(tool) as string),
    });
  });
});
