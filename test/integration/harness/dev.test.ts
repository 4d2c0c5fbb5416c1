/**
 * `harness dev`, on a copy of the sources: what a developer changes, and what goes on meanwhile.
 */
import { appendFile, cp, mkdir, readFile, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { Agent } from "../../../harness/agent.ts";
import { createPassableDirectory } from "../../../harness/temporary.ts";
import { patience } from "../../support/patience.ts";
import { CliProcess, runCli, runCliProcess } from "./cli-process.ts";
import { awaitedLater } from "../../support/workers/awaited-later.ts";

const timeoutMs = 120_000;
const root = join(import.meta.dirname, "../../..");
const namespace = "harness";

let home: Awaited<ReturnType<typeof createPassableDirectory>>;
let checkout: string;

beforeAll(async () => {
  home = await createPassableDirectory("str-dev-test-");
  checkout = join(home.path, "checkout");
  await mkdir(checkout);
  for (const name of ["bin", "worker", "harness", "tool-runner", "examples", "package.json"]) {
    await cp(join(root, name), join(checkout, name), { recursive: true });
  }
  await symlink(join(root, "node_modules"), join(checkout, "node_modules"));
}, timeoutMs);
afterAll(() => home[Symbol.asyncDispose]());

/** A running `harness dev` of the copy, with a temporary directory of its own. */
interface Dev extends AsyncDisposable {
  readonly cli: CliProcess;
  readonly port: string;
  readonly temporary: string;
}

async function startDev(
  args: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
  said = /The worker serves [^\n]+\.\n/,
): Promise<Dev> {
  const temporary = await createPassableDirectory("str-dev-test-");
  onTestFinished(() => temporary[Symbol.asyncDispose]());
  const cli = new CliProcess(
    ["dev", "--port", "0", ...args],
    { TMPDIR: temporary.path, ...environment },
    { command: [process.execPath, join(checkout, "harness", "cli.ts")], isGroup: true },
  );
  const [, port = ""] = await cli.said("stdout", /DevBroker listens on 127\.0\.0\.1:(\d+)/);
  await cli.said("stdout", said);
  return {
    cli,
    port,
    temporary: temporary.path,
    async [Symbol.asyncDispose]() {
      await cli[Symbol.asyncDispose]();
      // A worker notices that its supervisor is gone, and uses its directory until then.
      await whenNoWorkerIsLeft(port);
    },
  };
}

async function connect({ port }: Dev): Promise<Agent> {
  const address = { host: "127.0.0.1", port: Number(port), namespace };
  return Agent.connect(address, AbortSignal.timeout(30_000));
}

/** Waits until the worker has served so many times. */
async function servedTimes({ cli }: Dev, count: number): Promise<void> {
  await vi.waitFor(() => expect(cli.output.match(/The worker serves/g)?.length).toBe(count), {
    timeout: 30_000,
    interval: 50,
  });
}

/** Processes of a worker, by the port that only it was given. */
async function workersOf({ port }: Pick<Dev, "port">): Promise<readonly string[]> {
  const found = new Map<string, string | undefined>();
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
    if (!environment.includes(`DEV_BROKER_PORT=${port}\0`)) continue;
    const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
    found.set(pid, /^PPid:\t(\d+)$/m.exec(status)?.[1]);
  }
  // A program that a worker is starting is a copy of the worker first.
  return [...found].filter(([, parent]) => !found.has(parent ?? "")).map(([pid]) => pid);
}

async function whenNoWorkerIsLeft(port: string): Promise<void> {
  await vi.waitFor(async () => expect(await workersOf({ port })).toEqual([]), {
    timeout: 30_000,
    interval: 50,
  });
}

/** As a terminal does it: every process of the group hears it. */
function pressCtrlC({ cli }: Dev): void {
  process.kill(-(cli.child.pid ?? NaN), "SIGINT");
}

describe("harness dev", { timeout: timeoutMs }, () => {
  test(
    "starts the worker anew when its source changes, and connected agents go on",
    { tags: "full" },
    async () => {
      await using dev = await startDev();
      await using agent = await connect(dev);
      const call = { tool: "echo_tool", args: { message: "hello" } };
      expect(await agent.call(call)).toMatchObject({ kind: "success" });

      await appendFile(join(checkout, "worker", "worker.ts"), "\n// changed\n");
      await dev.cli.said("stdout", /Changed: \S*worker\/worker\.ts\. The worker starts anew\./);
      await servedTimes(dev, 2);
      await agent.whenServed("echo_tool", AbortSignal.timeout(30_000));
      expect(await agent.call(call)).toMatchObject({ kind: "success" });
      expect(await workersOf(dev)).toHaveLength(1);

      const module = join(checkout, "tool-runner", "python", "tool_runner", "runner.py");
      await appendFile(module, "\n# changed\n");
      await servedTimes(dev, 3);
    },
  );

  test(
    "tells of a worker that does not start, and tries again at the next change",
    { tags: "full" },
    async () => {
      await using dev = await startDev();
      const main = join(checkout, "worker", "main.ts");
      const source = await readFile(main, "utf8");
      onTestFinished(() => writeFile(main, source));
      await writeFile(main, `${source}\nconst =;\n`);
      await dev.cli.said("stdout", /SyntaxError[^]*The worker ended with exit code 1\./);
      expect(await workersOf(dev)).toEqual([]);
      await writeFile(main, source);
      await servedTimes(dev, 2);
    },
  );

  test(
    "tries a worker again when the manifest that it did not start with is corrected",
    { tags: "full" },
    async () => {
      const tools = join(home.path, "corrected");
      await mkdir(join(tools, "python"), { recursive: true });
      const manifest = join(tools, "manifest.yaml");
      await writeFile(manifest, "version: 2\ntools: {}\n");
      await using dev = await startDev(
        ["--tools", tools],
        {},
        /The worker ended with exit code 78\./,
      );
      await dev.cli.said("stdout", /manifest\.yaml:1:10: version: expected 1,/);
      await writeFile(manifest, "version: 1\ntools:\n  say: {module: words, function: say}\n");
      await dev.cli.said("stdout", /The worker serves say\./);
    },
  );

  test(
    "shows what tools print, where they fail, and which are not served, for what reason",
    { tags: "full" },
    async () => {
      const tools = join(home.path, "printing");
      await mkdir(tools);
      const source = `import time
def fails():
    print("before it fails")
    return {}["missing"]
def waits():
    print("before it waits")
    time.sleep(60)
`;
      await writeFile(join(tools, "printing.py"), source);
      const manifest = `version: 1
tools:
  fails: {module: printing, function: fails}
  waits: {module: printing, function: waits, timeout_seconds: 1}
  absent: {module: printing, function: fails, package: ${"no-such-package-".repeat(9)}x}
`;
      await writeFile(join(tools, "manifest.yaml"), manifest);
      await using dev = await startDev(["--tools", tools], {
        LOG_LEVEL: "warn",
        PACKAGE_POLICY: "check",
      });
      await using agent = await connect(dev);
      await agent.call({ tool: "fails" });
      await agent.call({ tool: "waits" });
      const { output } = dev.cli;
      expect(output).toMatch(
        /tool not served tool=absent\n {4}reason: package "(no-such-package-){9}x"/,
      );
      expect(output).toMatch(/ stdout fails: before it fails\n/);
      expect(output).toMatch(/ stderr fails: {3}File "\S*printing\.py", line 4, in fails\n/);
      expect(output).toContain(` stderr fails:     return {}["missing"]\n`);
      expect(output).toMatch(/invocation failed .*code=EXECUTION_ERROR\n {4}Tool raised KeyError/);
      expect(output).toMatch(/ stdout waits: before it waits\n[^]*invocation timed out/);
      expect(output).not.toMatch(/\bworker\/|tool_runner|[0-9a-f]{32}| info /);
      // The caller is told, too, also when the tool was stopped.
      const logs = async (tool: string): Promise<string> => {
        const place = ["--port", dev.port, "--namespace", namespace];
        return (await runCli(["invoke", ...place, "--tool", tool, "--logs"])).stderr;
      };
      expect(await logs("fails")).toMatch(
        /stdout: before it fails\nstderr: Traceback .*\nstderr: .*printing\.py", line 4, in fails\nstderr: {5}return \{\}\["missing"\]\n[^]*EXECUTION_ERROR: Tool raised KeyError/,
      );
      expect(await logs("waits")).toMatch(/stdout: before it waits\n[^]*SANDBOX_TIMEOUT/);
    },
  );

  test(
    "serves tools and manifest as they are now, with the same worker",
    { tags: "full" },
    async () => {
      const tools = join(home.path, "tools");
      await mkdir(join(tools, "python"), { recursive: true });
      const module = join(tools, "python", "words.py");
      const manifest = join(tools, "manifest.yaml");
      await writeFile(module, "def say():\n    return {'word': 'one'}\n");
      await writeFile(manifest, "version: 1\ntools:\n  say: {module: words, function: say}\n");
      await using dev = await startDev(["--tools", tools]);
      await using agent = await connect(dev);
      expect(await agent.call({ tool: "say" })).toMatchObject({ toolResult: { word: "one" } });

      await writeFile(module, "def say():\n    return {'word': 'two'}\n");
      // A sandbox may wait with what the file was until the change is noticed.
      await expect
        .poll(() => agent.call({ tool: "say" }), patience)
        .toMatchObject({ toolResult: { word: "two" } });
      await writeFile(
        join(tools, "node", "loud.js"),
        "export const say = () => ({ word: 'LOUD' });\n",
      );
      await appendFile(manifest, "  loud: {runtime: node, module: loud.js, function: say}\n");
      await agent.whenServed("loud", AbortSignal.timeout(30_000));
      expect(await agent.call({ tool: "loud" })).toMatchObject({ toolResult: { word: "LOUD" } });
      await servedTimes(dev, 1);
    },
  );

  test(
    "says how to call a tool, and the command works as it is printed",
    { tags: "full" },
    async () => {
      await using dev = await startDev();
      const [, command = ""] = await dev.cli.said("stdout", /another terminal:\n\n([^]*?)\n\n/);
      const { exitCode, stdout } = await runCliProcess(["-c", command], {}, { command: ["sh"] });
      expect({ exitCode, stdout }).toMatchObject({ exitCode: 0 });
      expect(JSON.parse(stdout)).toMatchObject({ echoed_message: "hello" });
    },
  );

  test(
    "shows the log by lines for people, whatever the environment says for other workers",
    { tags: "full" },
    async () => {
      await using dev = await startDev([], {
        LOG_LEVEL: "info",
        LOG_FORMAT: "pretty",
        SOLACE_BROKER_URL: "tcp://broker.of.others.invalid",
      });
      await dev.cli.said("stdout", /^\d\d:\d\d:\d\d info {2}worker ready .*store=filesystem/m);
      expect(dev.cli.output).not.toContain('{"level"');
    },
  );

  test(
    "ends at Ctrl-C: running calls finish, the exit code is 0, and nothing is left",
    { tags: "full" },
    async () => {
      await using dev = await startDev();
      await using agent = await connect(dev);
      const begun = Promise.withResolvers<void>();
      const args = { to: 4, pause_seconds: 0.5 };
      const onStatus = (): void => begun.resolve();
      const call = awaitedLater(agent.call({ tool: "count_slowly", args }, { onStatus }));
      await begun.promise;
      pressCtrlC(dev);
      expect(await call).toMatchObject({ kind: "success", toolResult: { counted_to: 4 } });
      expect((await dev.cli.finished).exitCode).toBe(0);
      expect(dev.cli.output).toMatch(/drained finished=1 .*\nStopped\.\n$/);
      expect(await workersOf(dev)).toEqual([]);
      expect(await readdir(dev.temporary)).toEqual([]);
    },
  );

  test("leaves no worker behind when it is killed", { tags: "full" }, async () => {
    await using dev = await startDev();
    expect(await workersOf(dev)).toHaveLength(1);
    dev.cli.child.kill("SIGKILL");
    await dev.cli.finished;
    await whenNoWorkerIsLeft(dev.port);
  });

  test("refuses a directory of tools that is not there", async () => {
    const { exitCode, stderr } = await runCli(["dev", "--tools", "/nonexistent/tools"]);
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: "error: --tools /nonexistent/tools: there is no such directory\n",
    });
  });
});

test(
  "npm run dev sets up what is missing and ends at Ctrl-C with 0",
  { tags: "full", timeout: timeoutMs },
  async () => {
    const cli = new CliProcess(
      [],
      {},
      {
        command: ["npm", "run", "dev", "--", "--port", "0"],
        cwd: root,
        isGroup: true,
      },
    );
    await using _cli = cli;
    await cli.said("stdout", /worker ready/);
    process.kill(-(cli.child.pid ?? NaN), "SIGINT");
    expect((await cli.finished).exitCode).toBe(0);
  },
);
