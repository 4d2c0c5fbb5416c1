/**
 * `harness invoke` against a real worker with real sandboxes: what the two say to each other fits.
 */
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type DevBroker, startDevBroker } from "../../../harness/dev-broker/dev-broker.ts";
import { exampleManifest, examplePythonDir } from "../../../harness/package.ts";
import { createPassableDirectory } from "../../../harness/temporary.ts";
import { WorkerProcess } from "../../../harness/worker/worker-process.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { CliProcess, type CliResult, runCli } from "./cli-process.ts";

const timeoutMs = 60_000;
const namespace = "real/ns/";

const stack = new AsyncDisposableStack();
let broker: DevBroker;
let directory: string;
let environment: Record<string, string>;

beforeAll(async () => {
  const home = stack.use(await createPassableDirectory("str-real-worker-test-"));
  directory = await mkdtemp(join(tmpdir(), "real-worker-test-"));
  stack.defer(() => rm(directory, { recursive: true }));
  const workDir = join(home.path, "work");
  await mkdir(workDir);
  await chmod(workDir, 0o711);
  broker = stack.use(await startDevBroker());
  environment = {
    SAM_NAMESPACE: namespace,
    ARTIFACT_SERVICE_TYPE: "filesystem",
    ARTIFACT_BASE_PATH: join(directory, "artifacts"),
  };
  const worker = stack.use(
    new WorkerProcess({
      ...environment,
      PATH: "/usr/local/bin:/usr/bin:/bin",
      DEV_BROKER_HOST: broker.host,
      DEV_BROKER_PORT: String(broker.port),
      MANIFEST_PATH: exampleManifest,
      TOOLS_PYTHON_DIR: examplePythonDir,
      SANDBOX_WORK_DIR: workDir,
      SANDBOX_MIN_FREE_DISK_MB: "0",
      HEALTH_PORT: "0",
      LOG_LEVEL: "warn",
    }),
  );
  await broker.whenSubscribed(invokeTopic(namespace, "echo_tool"), worker.ended);
}, timeoutMs);

afterAll(() => stack.disposeAsync(), timeoutMs);

function invoke(...args: string[]): Promise<CliResult> {
  const fixed = ["invoke", "--broker", `127.0.0.1:${broker.port}`];
  return runCli([...fixed, ...args], environment);
}

describe("harness invoke at a real worker", { timeout: timeoutMs }, () => {
  test("echoes", { tags: "full" }, async () => {
    const { exitCode, stdout, stderr } = await invoke(
      ...["--tool", "echo_tool", "--args", '{"message": "hé\\n"}', "--wait-for-worker"],
    );
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ status: "success", echoed_message: "hé\n" });
    expect(stderr).toContain("status: Echoing message...\n");
  });

  test("sends a file through the store and gets one back", async () => {
    const file = join(directory, "input.txt");
    await writeFile(file, "one two\nthree\n");
    const out = join(directory, "results");
    const { exitCode, stdout, stderr } = await invoke(
      ...["--tool", "process_file", "--artifact", `input_file=${file}`, "--out", out],
    );
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(stdout)).toMatchObject({
      statistics: { line_count: 3, word_count: 3, char_count: 14 },
    });
    expect(stderr).toContain("artifact summary.txt: version 0, text/plain, 27 bytes");
    expect(await readFile(join(out, "summary.txt"), "utf8")).toBe("Lines: 3\nWords: 3\nChars: 14");
  });

  test("sends a file inside the request", { tags: "full" }, async () => {
    const file = join(directory, "small.txt");
    await writeFile(file, "a b c");
    const call = ["--tool", "process_file", "--preload", `input_file=${file}`];
    const { exitCode, stdout } = await invoke(...call);
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ statistics: { word_count: 3 } });
  });

  test(
    "refers to an artifact that is not there, and shows the worker's error",
    { tags: "full" },
    async () => {
      const call = ["--tool", "process_file", "--artifact", "input_file=nothing.txt:9"];
      const { exitCode, stderr } = await invoke(...call);
      expect(exitCode).toBe(1);
      expect(stderr).toMatch(/^ARTIFACT_ERROR: .*"nothing\.txt" version 9/m);
    },
  );

  test("shows the error that a tool raised", async () => {
    const args = '{"value": -300, "source": "celsius", "target": "kelvin"}';
    const { exitCode, stdout, stderr } = await invoke(
      ...["--tool", "convert_temperature", "--args", args],
    );
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toBe("TOOL_ERROR: -300 celsius is below absolute zero\n");
  });

  test(
    "shows statuses until the worker stops the tool, and exits with 124",
    { tags: "full" },
    async () => {
      const args = '{"to": 100, "pause_seconds": 0.2}';
      const { exitCode, stderr } = await invoke(
        ...["--tool", "count_slowly", "--args", args, "--timeout", "1"],
      );
      expect(exitCode).toBe(124);
      expect(stderr).toContain("status: Counted to 1 of 100\n");
      expect(stderr).toContain("SANDBOX_TIMEOUT: The worker stopped the tool after");
    },
  );

  test("prints statuses as they come, not when the call is over", async () => {
    const args = ["--tool", "count_slowly", "--args", '{"to": 2, "pause_seconds": 30}'];
    const fixed = ["invoke", "--broker", `127.0.0.1:${broker.port}`];
    await using cli = new CliProcess([...fixed, ...args], environment);
    await cli.said("stderr", /Counted to 1 of 2/);
    cli.child.kill("SIGINT");
    expect((await cli.finished).exitCode).toBe(130);
  });
});
