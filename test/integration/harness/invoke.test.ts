/**
 * `harness invoke` at a running broker, against a peer that answers as each test says: output,
 * files and exit codes.
 */
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type DevBroker, startDevBroker } from "../../../harness/dev-broker/dev-broker.ts";
import { createFilesystemStore } from "../../../worker/artifacts/filesystem/store.ts";
import { DevClient } from "../../support/brokers/dev-client.ts";
import { patience } from "../../support/patience.ts";
import { CliProcess, CliRun, type CliResult, runCli } from "./cli-process.ts";
import { type Script, type ScriptedWorker, startScriptedWorker } from "./scripted-worker.ts";

const timeoutMs = 60_000;
const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const never = new AbortController().signal;

interface Scene {
  readonly broker: DevBroker;
  readonly worker: ScriptedWorker;
  /** A temporary directory. */
  readonly directory: string;
  readonly environment: Record<string, string>;
  run(...args: string[]): Promise<CliResult>;
}

async function setScene(script: Script): Promise<Scene> {
  const stack = new AsyncDisposableStack();
  onTestFinished(() => stack.disposeAsync());
  const directory = await mkdtemp(join(tmpdir(), "invoke-test-"));
  stack.defer(() => rm(directory, { recursive: true }));
  const broker = stack.use(await startDevBroker());
  const pattern = "ns/a2a/v1/sam_remote_tool/invoke/>";
  const worker = stack.use(await startScriptedWorker(broker.port, pattern, script));
  const environment = {
    SAM_NAMESPACE: "ns",
    ARTIFACT_SERVICE_TYPE: "filesystem",
    ARTIFACT_BASE_PATH: join(directory, "artifacts"),
  };
  const fixed = ["invoke", "--broker", `127.0.0.1:${broker.port}`];
  const run = (...args: string[]) => runCli([...fixed, ...args], environment);
  return { broker, worker, directory, environment, run };
}

describe("harness invoke", { timeout: timeoutMs }, () => {
  test("prints the tool's result on stdout, statuses on stderr, and exits with 0", async () => {
    const { run, worker } = await setScene(async (_request, reply) => {
      await reply.status("Thinking");
      await reply.result({ status: "success", text: "hé" });
    });
    const result = await run(
      ...["--tool", "echo_tool", "--args", '{"message": "hello"}', "--config", '{"key": "s3cret"}'],
      ...["--user", "user-42", "--session", "web-1", "--timeout", "30", "--profile", "restrictive"],
      ...["--traceparent", traceparent],
    );
    expect(result.exitCode).toBe(0);
    expect(result.stdout).toBe('{\n  "status": "success",\n  "text": "hé"\n}\n');
    expect(result.stderr).toBe("status: Thinking\n");
    expect(worker.requests[0]?.params).toMatchObject({
      args: { message: "hello" },
      tool_config: { key: "s3cret" },
      app_name: "harness",
      user_id: "user-42",
      session_id: "web-1",
      timeout_seconds: 30,
      sandbox_profile: "restrictive",
    });
    expect(worker.requests[0]?.properties).toMatchObject({ userId: "user-42", traceparent });
  });

  test("shows what the tool printed with --logs, and nothing of it controls the terminal", async () => {
    const stdout = { text: "one\ntwo", dropped_bytes: 7 };
    const output = { stdout, stderr: { text: "\u001b[2JTraceback\n", dropped_bytes: 0 } };
    const { run } = await setScene((_request, reply) =>
      reply.result({ n: 1 }, { execution: { output } }),
    );
    const shown =
      "stdout: … 7 bytes before\nstdout: one\nstderr: \\u001b[2JTraceback\nstdout: two\n";
    expect(await run("--tool", "any", "--logs")).toMatchObject({ exitCode: 0, stderr: shown });
    expect(await run("--tool", "any")).toMatchObject({ exitCode: 0, stderr: "" });
  });

  test("says with --logs how a worker sends them, where this one does not", async () => {
    const { run } = await setScene((_request, reply) => reply.error("TOOL_ERROR", "no"));
    expect(await run("--tool", "any", "--logs")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^no logs: .*TOOL_LOGS=caller.*\nTOOL_ERROR: no\n$/) as string,
    });
  });

  test("asks for any profile, and prints what a worker says that does not know it", async () => {
    const { run, worker } = await setScene((_request, reply) =>
      reply.error("INVALID_REQUEST", "unknown profile, expected one of standard, training"),
    );
    const result = await run("--tool", "echo_tool", "--profile", "trainig");
    expect(worker.requests[0]?.params).toMatchObject({ sandbox_profile: "trainig" });
    expect(result).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("one of standard, training") as string,
    });
  });

  test("prints the whole response as one line with --json", async () => {
    const { run } = await setScene((_request, reply) => reply.result({ text: "a\nb" }));
    const { exitCode, stdout } = await run("--tool", "echo_tool", "--json");
    expect(exitCode).toBe(0);
    expect(stdout.endsWith("\n")).toBe(true);
    expect(stdout.trimEnd().split("\n")).toHaveLength(1);
    expect(JSON.parse(stdout)).toMatchObject({
      jsonrpc: "2.0",
      result: { tool_result: { text: "a\nb" }, execution_time_ms: 12, created_artifacts: [] },
    });
  });

  test("prints code and message of an error on stderr, and exits with 1", async () => {
    const { run } = await setScene((_request, reply) => reply.error("TOOL_ERROR", "no such unit"));
    const plain = await run("--tool", "convert");
    expect(plain).toEqual({ exitCode: 1, stdout: "", stderr: "TOOL_ERROR: no such unit\n" });
    const json = await run("--tool", "convert", "--json");
    expect(json.exitCode).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({ error: { code: "TOOL_ERROR" } });
    expect(json.stderr).toBe("TOOL_ERROR: no such unit\n");
  });

  test("says which answer agents would refuse, and exits with 1", async () => {
    const { run } = await setScene((request, reply) =>
      reply.send({
        jsonrpc: "2.0",
        id: request.id,
        result: { tool_result: "text", execution_time_ms: 1 },
      }),
    );
    const { exitCode, stderr } = await run("--tool", "any");
    expect(exitCode).toBe(1);
    expect(stderr).toBe(
      "INVALID_RESPONSE: Agents refuse this answer: result.tool_result: expected an object\n",
    );
  });

  test("exits with 124 when the worker stopped the tool", async () => {
    const { run } = await setScene((_request, reply) =>
      reply.result({}, { timed_out: true, execution_time_ms: 7013 }),
    );
    const { exitCode, stdout, stderr } = await run("--tool", "slow");
    expect({ exitCode, stdout }).toEqual({ exitCode: 124, stdout: "" });
    expect(stderr).toContain("SANDBOX_TIMEOUT");
    expect(stderr).toContain("7013 ms");
  });

  test("exits with 124 when nobody answers, and names the topic", { tags: "full" }, async () => {
    const { run } = await setScene(() => undefined);
    const { exitCode, stdout, stderr } = await run("--tool", "silent", "--timeout", "1");
    expect({ exitCode, stdout }).toEqual({ exitCode: 124, stdout: "" });
    expect(stderr).toContain(
      "No answer to the call on ns/a2a/v1/sam_remote_tool/invoke/silent within 11 s.",
    );
    expect(stderr).toContain("SAM_NAMESPACE");
  });

  test("calls once more when the tool is not available", { tags: "full" }, async () => {
    const { run, worker } = await setScene((_request, reply) =>
      worker.requests.length === 1
        ? reply.error("TOOL_NOT_AVAILABLE", "gone")
        : reply.result({ ok: true }),
    );
    expect((await run("--tool", "moving")).exitCode).toBe(0);
    expect(worker.requests.map(({ params }) => params["tool_name"])).toEqual(["moving", "moving"]);
  });

  test("keeps a tool's words from taking over the terminal", async () => {
    const { run } = await setScene(async (_request, reply) => {
      await reply.status("\u001b]0;title\u0007\u202eevil");
      await reply.error("TOOL_ERROR", "\u001b[2Jgone");
    });
    const { stderr } = await run("--tool", "any");
    expect(stderr).toBe("status: \\u001b]0;title\\u0007\\u202eevil\nTOOL_ERROR: \\u001b[2Jgone\n");
  });

  test("says who does not listen when the broker cannot be reached", async () => {
    const broker = await startDevBroker();
    const { port } = broker;
    await broker[Symbol.asyncDispose]();
    const { exitCode, stderr } = await runCli([
      ...["invoke", "--tool", "any", "--broker", `127.0.0.1:${port}`],
    ]);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(new RegExp(`^error: Cannot connect.*127\\.0\\.0\\.1:${port}.*REFUSED`));
  });

  test("fails when the broker goes away before the answer", async () => {
    const { run, broker } = await setScene(() => void broker[Symbol.asyncDispose]());
    const { exitCode, stderr } = await run("--tool", "any");
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /^broker connection lost: .*\nerror: The connection to the broker was lost/,
    );
  });

  test("takes a URL, or the worker's variables with the name of their kind", async () => {
    const { broker } = await setScene((_request, reply) => reply.result({ ok: true }));
    const ways = [
      { broker: `dev://127.0.0.1:${broker.port}` },
      { broker: "dev", DEV_BROKER_HOST: "127.0.0.1", DEV_BROKER_PORT: String(broker.port) },
    ];
    for (const { broker: text, ...variables } of ways) {
      const args = ["invoke", "--namespace", "ns", "--tool", "any", "--broker", text];
      expect(await runCli(args, variables)).toMatchObject({ exitCode: 0, stderr: "" });
    }
  });

  test("cancels its call at Ctrl-C, and ends at once with 130 at the next, or with 143 at SIGTERM", async () => {
    const { environment, broker, worker } = await setScene(() => undefined);
    const base = "ns/a2a/v1/sam_remote_tool";
    const client = await DevClient.connect(
      { host: broker.host, port: broker.port, name: "listener", patterns: [`${base}/cancel/>`] },
      never,
    );
    onTestFinished(() => client[Symbol.asyncDispose]());
    const cancels = client.messages(never);
    const args = ["invoke", "--broker", `127.0.0.1:${broker.port}`, "--tool", "silent"];
    const ends = [
      ["SIGINT", 130],
      ["SIGTERM", 143],
    ] as const;
    for (const [index, [signal, code]] of ends.entries()) {
      await using cli = new CliProcess(args, environment);
      await expect.poll(() => worker.requests.length, { timeout: 20_000 }).toBe(index + 1);
      cli.child.kill("SIGINT");
      await cli.said("stderr", /^cancelling the call; Ctrl-C again leaves at once\n$/);
      const { id, properties } = worker.requests[index]!;
      const { value: cancel } = await cancels.next();
      expect(cancel).toMatchObject({
        topic: `${base}/cancel/${id}`,
        userProperties: { replyTo: properties["replyTo"], clientId: properties["clientId"] },
      });
      // Later than a repetition of the first.
      await vi.waitFor(() => {
        cli.child.kill(signal);
        expect(cli.child.exitCode).toBe(code);
      }, patience);
      expect(await cli.finished).toMatchObject({ exitCode: code, stdout: "" });
    }
  });

  test("ends with 130 once its cancelled call is answered", { tags: "full" }, async () => {
    const isCancelled = Promise.withResolvers<void>();
    const { environment, broker, worker } = await setScene(async (_request, reply) => {
      await isCancelled.promise;
      await reply.error("CANCELLED", "The caller cancelled the call");
    });
    const args = ["invoke", "--broker", `127.0.0.1:${broker.port}`, "--tool", "slow"];
    await using cli = new CliProcess(args, environment);
    await expect.poll(() => worker.requests.length, { timeout: 20_000 }).toBe(1);
    cli.child.kill("SIGINT");
    await cli.said("stderr", /cancelling/);
    isCancelled.resolve();
    const { exitCode, stderr } = await cli.finished;
    expect(exitCode).toBe(130);
    expect(stderr).toContain("CANCELLED: The caller cancelled the call\n");
  });
});

describe("harness invoke --wait-for-worker", { timeout: timeoutMs }, () => {
  test("waits at a running broker, and calls once", async () => {
    const broker = await startDevBroker();
    onTestFinished(() => broker[Symbol.asyncDispose]());
    const args = ["--broker", `127.0.0.1:${broker.port}`, "--namespace", "ns", "--wait-for-worker"];
    await using cli = new CliRun(["invoke", "--tool", "late", ...args]);
    await cli.said("stderr", /Waiting up to 300 s for a worker that serves late/);
    const topic = "ns/a2a/v1/sam_remote_tool/invoke/late";
    await using worker = await startScriptedWorker(broker.port, topic, (request, reply) =>
      "task_id" in request.params
        ? reply.result({ ran: true })
        : reply.error("INVALID_REQUEST", "params.task_id: missing"),
    );
    const { exitCode, stdout } = await cli.finished;
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ ran: true });
    expect(worker.requests.filter(({ params }) => "task_id" in params)).toHaveLength(1);
  });

  test("gives up after --timeout, and names the topic", { tags: "full" }, async () => {
    const broker = await startDevBroker();
    onTestFinished(() => broker[Symbol.asyncDispose]());
    const { exitCode, stderr } = await runCli([
      ...["invoke", "--tool", "late", "--broker", `127.0.0.1:${broker.port}`],
      ...["--namespace", "ns", "--wait-for-worker", "--timeout", "1"],
    ]);
    expect(exitCode).toBe(124);
    expect(stderr).toContain(
      "No worker answered on ns/a2a/v1/sam_remote_tool/invoke/late within 1 s.",
    );
  });
});

describe("files of harness invoke", { timeout: timeoutMs }, () => {
  test("--artifact saves a new version where the worker finds it, and refers to it", async () => {
    const { run, worker, directory, environment } = await setScene((_request, reply) =>
      reply.result({}),
    );
    const file = join(directory, "data.csv");
    await writeFile(file, "a,b\n");
    const call = ["--tool", "read", "--user", "u", "--session", "s"];
    await run(...call, "--artifact", `input=${file}`);
    await run(...call, "--artifact", `input=${file}`, "--args", '{"input": "other", "n": 1}');
    expect(worker.requests[0]?.params).toMatchObject({
      args: { input: "data.csv" },
      artifact_references: { input: { filename: "data.csv", version: 0 } },
      preloaded_artifacts: {},
    });
    expect(worker.requests[1]?.params).toMatchObject({
      args: { input: "other", n: 1 },
      artifact_references: { input: { filename: "data.csv", version: 1 } },
    });
    const stored = join(environment["ARTIFACT_BASE_PATH"] ?? "", "ns", "u", "s", "data.csv", "1");
    expect(await readFile(stored, "utf8")).toBe("a,b\n");
  });

  test("--artifact repeated for one parameter makes a list in the order given", async () => {
    const { run, worker, directory } = await setScene((_request, reply) => reply.result({}));
    const [a, b] = [join(directory, "a.txt"), join(directory, "b.txt")];
    await writeFile(a, "a");
    await writeFile(b, "b");
    const result = await run("--tool", "t", "--artifact", `files=${b}`, "--artifact", `files=${a}`);
    expect(result.exitCode).toBe(0);
    expect(worker.requests[0]?.params).toMatchObject({
      args: { files: ["b.txt", "a.txt"] },
      artifact_references: {
        "files[0]": { filename: "b.txt", version: 0 },
        "files[1]": { filename: "a.txt", version: 0 },
      },
    });
  });

  test.for([
    ["PARAM[]=FILE", "files[]", {}, ["a.txt"]],
    ["an array in --args", "files", { files: ["named.txt"] }, ["named.txt"]],
  ] as const)("%s makes a list of one", async ([, parameter, args, filenames]) => {
    const { run, worker, directory } = await setScene((_request, reply) => reply.result({}));
    const file = join(directory, "a.txt");
    await writeFile(file, "a");
    for (const option of ["--artifact", "--preload"]) {
      const call = ["--tool", "t", "--args", JSON.stringify(args), option, `${parameter}=${file}`];
      expect(await run(...call)).toMatchObject({ exitCode: 0 });
    }
    const staged = { "files[0]": expect.objectContaining({ filename: "a.txt" }) as object };
    expect(worker.requests.map(({ params }) => params)).toMatchObject([
      { args: { files: filenames }, artifact_references: staged, preloaded_artifacts: {} },
      { args: { files: filenames }, artifact_references: {}, preloaded_artifacts: staged },
    ]);
  });

  test("--artifact NAME:VERSION refers to a stored version; a local file of that very name wins", async () => {
    const { run, worker, directory } = await setScene((_request, reply) => reply.result({}));
    const odd = join(directory, "odd:7");
    await writeFile(odd, "odd");
    const inputs = ["--artifact", "a=user:prefs.json:3", "--artifact", `b=${odd}`];
    expect((await run("--tool", "t", ...inputs)).exitCode).toBe(0);
    expect(worker.requests[0]?.params).toMatchObject({
      args: { a: "user:prefs.json", b: "odd:7" },
      artifact_references: {
        a: { filename: "user:prefs.json", version: 3 },
        b: { filename: "odd:7", version: 0 },
      },
    });
  });

  test("--preload sends content inside the request", async () => {
    const { run, worker, directory } = await setScene((_request, reply) => reply.result({}));
    const file = join(directory, "notes.txt");
    await writeFile(file, Buffer.from([0, 255, 10]));
    const preload = ["--preload", `one=${file}`];
    await run("--tool", "t", ...preload, "--preload", `two=${file}`, "--preload", `two=${file}`);
    const content = { filename: "notes.txt", content: "AP8K", mime_type: "text/plain", version: 0 };
    expect(worker.requests[0]?.params).toMatchObject({
      args: { one: "notes.txt", two: ["notes.txt", "notes.txt"] },
      preloaded_artifacts: { one: content, "two[0]": content, "two[1]": content },
      artifact_references: {},
    });
  });

  test("--out downloads what the tool created, user artifacts included", async () => {
    const { run, environment, directory } = await setScene((_request, reply) => {
      const created = { version: 0, mime_type: "text/plain", size_bytes: 5 };
      return reply.result(
        {},
        {
          created_artifacts: [
            { filename: "summary.txt", ...created },
            { filename: "user:notes.txt", ...created },
          ],
        },
      );
    });
    await using store = createFilesystemStore({
      basePath: environment["ARTIFACT_BASE_PATH"] ?? "",
    });
    await store.check(new AbortController().signal);
    const scope = { root: "ns", userId: "harness", sessionId: "harness" };
    for (const filename of ["summary.txt", "user:notes.txt"]) {
      const source = { sizeBytes: 5, open: () => Readable.from([Buffer.from("12345")]) };
      const metadata = { mimeType: "text/plain" };
      await store.save(scope, filename, source, metadata, new AbortController().signal);
    }
    const out = join(directory, "deep", "results");
    const { exitCode, stderr } = await run("--tool", "t", "--out", out);
    expect(exitCode).toBe(0);
    expect((await readdir(out)).sort()).toEqual(["summary.txt", "user:notes.txt"]);
    expect(await readFile(join(out, "summary.txt"), "utf8")).toBe("12345");
    expect(stderr).toContain("artifact summary.txt: version 0, text/plain, 5 bytes");
    expect(stderr).toContain(`saved ${join(out, "summary.txt")}: version 0`);
  });

  test("--out says that worker and harness must share the store when an artifact is not there", async () => {
    const { run, directory } = await setScene((_request, reply) =>
      reply.result(
        {},
        {
          created_artifacts: [
            { filename: "gone.txt", version: 4, mime_type: "text/plain", size_bytes: 5 },
          ],
        },
      ),
    );
    const { exitCode, stderr } = await run("--tool", "t", "--out", join(directory, "results"));
    expect(exitCode).toBe(1);
    expect(stderr).toContain('cannot download "gone.txt" version 4');
    expect(stderr).toContain("same ARTIFACT_* variables and exactly the same namespace");
  });

  test("--out writes no file outside its directory, whatever the worker calls its artifacts", async () => {
    const { run, directory } = await setScene((_request, reply) =>
      reply.result(
        {},
        {
          created_artifacts: [
            { filename: "../escaped.txt", version: 0, mime_type: "text/plain", size_bytes: 5 },
          ],
        },
      ),
    );
    const { exitCode, stderr } = await run("--tool", "t", "--out", join(directory, "results"));
    expect(exitCode).toBe(1);
    expect(stderr).toContain("it holds a slash");
    expect((await readdir(directory)).includes("escaped.txt")).toBe(false);
  });
});
