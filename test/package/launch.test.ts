/**
 * The commands find a Node that can run them, and under an older Node become it as far as a parent
 * can tell.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, afterEach, beforeEach, describe, expect, test } from "vitest";
import { nodePackage, olderNode, ownNode, root, run, userEnvironment } from "./processes.ts";

let base: string;

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "launch-"));
});

afterEach(() => {
  rmSync(base, { recursive: true });
});

/** A package with the real commands and a program of our own; returns the path of its command. */
function makePackage(at: string, files: Record<string, string>): string {
  const directory = join(base, at);
  cpSync(join(root, "bin"), join(directory, "bin"), { recursive: true });
  for (const [name, text] of Object.entries({ "package.json": `{"type":"module"}`, ...files })) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), text);
  }
  return join(directory, "bin", "harness.mjs");
}

/** Puts the project's Node 24 where `npm install ${nodePackage}@24` in that directory would. */
function putNode24(at: string, as = "node"): void {
  mkdirSync(join(base, at, "node_modules"), { recursive: true });
  symlinkSync(join(root, "node_modules", "node"), join(base, at, "node_modules", as));
}

const tellsItself = `
  import { readSync } from "node:fs";
  const input = Buffer.alloc(100);
  const text = input.toString("utf8", 0, readSync(0, input));
  console.log(JSON.stringify([process.version.split(".")[0], process.argv.slice(2), text]));
  console.error("on stderr");
  process.exit(Number(process.argv[2]));
`;

const waitsForSignals = `
  process.on("SIGTERM", () => { console.log("TERM"); });
  process.on("SIGINT", () => process.exit(7));
  setInterval(() => {}, 1000);
  console.log("ready");
`;

/** Starts the command and waits for its first line. */
async function start(
  node: string,
  command: string,
): Promise<{ child: ChildProcess; nextLine: () => Promise<string> }> {
  const child = spawn(node, [command], {
    stdio: ["ignore", "pipe", "inherit"],
    env: userEnvironment(),
  });
  const nextLine = async (): Promise<string> => String(await once(child.stdout, "data")).trim();
  expect(await nextLine()).toBe("ready");
  return { child, nextLine };
}

describe("under Node 24", () => {
  test("a checkout runs its sources", async () => {
    const command = makePackage("checkout", {
      "harness/cli.ts": `const text: string = "source"; console.log(text);`,
    });
    expect(await run(ownNode, [command])).toMatchObject({ status: 0, stdout: "source\n" });
  });

  test("a checkout that was built runs what was built", async () => {
    const command = makePackage("checkout", {
      "harness/cli.ts": `const text: string = "source"; console.log(text);`,
      "dist/harness/cli.js": `console.log("built");`,
    });
    expect(await run(ownNode, [command])).toMatchObject({ status: 0, stdout: "built\n" });
  });

  test("an installed package runs what was built", async () => {
    const command = makePackage("node_modules/it", {
      "dist/harness/cli.js": `console.log("built");`,
    });
    expect(await run(ownNode, [command])).toMatchObject({ status: 0, stdout: "built\n" });
  });

  test("a program that throws fails the command", async () => {
    const command = makePackage("checkout", { "harness/cli.ts": `throw new Error("broken");` });
    const ending = await run(ownNode, [command]);
    expect(ending.status).toBe(1);
    expect(ending.stderr).toContain("broken");
  });
});

describe("under an older Node", () => {
  type Place = readonly [where: string, packageAt: string, nodeAt: string];
  const own: Place = ["its own node_modules", "it", "it"];
  const others: readonly Place[] = [
    ["the node_modules that it is installed in", "node_modules/it", "."],
    ["a node_modules further up", "a/b/node_modules/it", "."],
  ];
  const isFound = async ([, packageAt, nodeAt]: Place, { skip }: TestContext): Promise<void> => {
    const older = olderNode(skip);
    const command = makePackage(packageAt, {
      "dist/harness/cli.js": `console.log(process.version.split(".")[0]);`,
    });
    putNode24(nodeAt);
    expect(await run(older, [command])).toMatchObject({ status: 0, stdout: "v24\n" });
  };
  test.for([own])("Node 24 is found in %s", isFound);
  test.for(others)("Node 24 is found in %s", { tags: "full" }, isFound);

  test(
    "Node 24 is found as the package that needs no install script",
    { tags: "full" },
    async ({ skip }) => {
      const older = olderNode(skip);
      const command = makePackage("it", { "harness/cli.ts": `console.log("ran");` });
      putNode24("it", nodePackage);
      expect(await run(older, [command])).toMatchObject({ status: 0, stdout: "ran\n" });
    },
  );

  test("arguments, streams and the exit code pass through", async ({ skip }) => {
    const older = olderNode(skip);
    const command = makePackage("it", { "harness/cli.ts": tellsItself });
    putNode24("it");
    expect(await run(older, [command, "42", "--two words"])).toEqual({
      status: 42,
      signal: null,
      stdout: `["v24",["42","--two words"],""]\n`,
      stderr: "on stderr\n",
    });
  });

  test("a signal reaches the program, which decides what it means", async ({ skip }) => {
    const older = olderNode(skip);
    const command = makePackage("it", { "harness/cli.ts": waitsForSignals });
    putNode24("it");
    const { child, nextLine } = await start(older, command);
    const answer = nextLine();
    child.kill("SIGTERM");
    expect(await answer).toBe("TERM");
    child.kill("SIGINT");
    expect(await once(child, "exit")).toEqual([7, null]);
  });

  test("a program whose command was killed gets SIGTERM, also after it closed what it was started with", async ({
    skip,
  }) => {
    const older = olderNode(skip);
    const descriptors = join(root, "worker", "support", "inherited-descriptors.ts");
    const command = makePackage("it", {
      "harness/cli.ts": `
        import { closeInheritedDescriptors } from ${JSON.stringify(descriptors)};
        closeInheritedDescriptors();
        process.on("SIGUSR2", () => console.log("connected", process.connected));
        process.on("SIGTERM", () => { console.log("TERM"); process.exit(); });
        setInterval(() => {}, 1000);
        console.log("ready");
      `,
    });
    putNode24("it");
    const { child, nextLine } = await start(older, command);
    const connected = nextLine();
    child.kill("SIGUSR2");
    expect(await connected).toBe("connected true");
    const [answer, closed] = [nextLine(), once(child, "close")];
    child.kill("SIGKILL");
    expect(await answer).toBe("TERM");
    // The program had the other end of the pipe.
    await closed;
  });

  test("a program ends when it has nothing more to do", { tags: "full" }, async ({ skip }) => {
    const older = olderNode(skip);
    const mark = `console.log(process.env.STR_LAUNCHED ?? "no mark");`;
    const command = makePackage("it", { "harness/cli.ts": mark });
    putNode24("it");
    expect(await run(older, [command])).toMatchObject({ status: 0, stdout: "no mark\n" });
  });

  test(
    "a program that a signal ended ends the command by the same signal",
    { tags: "full" },
    async ({ skip }) => {
      const older = olderNode(skip);
      const command = makePackage("it", { "harness/cli.ts": waitsForSignals });
      putNode24("it");
      const { child } = await start(older, command);
      child.kill("SIGHUP");
      expect(await once(child, "exit")).toEqual([null, "SIGHUP"]);
    },
  );

  type Kind = readonly [name: string, packageAt: string, command: (at: string) => string];
  const checkout: Kind = ["a checkout", "it", (at) => `cd ${join(at, "it")} && npm ci`];
  const packages: readonly Kind[] = [
    [
      "a project's package",
      "app/node_modules/it",
      (at: string) => `npm install --prefix ${join(at, "app")} ${nodePackage}@24`,
    ],
    [
      "a global package",
      "usr/lib/node_modules/it",
      (at: string) =>
        `npm install --global --no-bin-links --prefix ${join(at, "usr")} ${nodePackage}@24`,
    ],
  ];
  const says = async (
    [, packageAt, installCommand]: Kind,
    { skip }: TestContext,
  ): Promise<void> => {
    const older = olderNode(skip);
    const command = makePackage(packageAt, { "harness/cli.ts": "" });
    const ending = await run(older, [command]);
    expect(ending).toMatchObject({ status: 69, stdout: "" });
    expect(ending.stderr).toMatch(/^harness\.mjs needs Node 24 or newer; this is v\d+/);
    expect(ending.stderr).toContain(`\n  ${installCommand(base)}\n`);
  };
  test.for([checkout])("and with no Node 24 to find, %s says how to get one", says);
  test.for(packages)("and with no Node 24 to find, %s says how to get one", { tags: "full" }, says);

  test(
    "a package node that is too old, or is the calling Node, is no help",
    { tags: "full" },
    async ({ skip }) => {
      const older = olderNode(skip);
      const command = makePackage("it", {
        "harness/cli.ts": "",
        "node_modules/node/package.json": `{"version":"18.0.0"}`,
        "node_modules/node/bin/node": "",
      });
      expect(await run(older, [command])).toMatchObject({ status: 69 });
      writeFileSync(join(base, "it/node_modules/node/package.json"), `{"version":"24.0.0"}`);
      rmSync(join(base, "it/node_modules/node/bin/node"));
      symlinkSync(older, join(base, "it/node_modules/node/bin/node"));
      expect(await run(older, [command])).toMatchObject({ status: 69 });
    },
  );
});
