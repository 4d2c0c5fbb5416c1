/**
 * Tools without isolation: only where a developer allowed it, and told of every call.
 */
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { Agent } from "../../../harness/agent.ts";
import { startDevBroker } from "../../../harness/dev-broker/dev-broker.ts";
import {
  type Rig,
  manifestText,
  namespace,
  nodeTool,
  reachableDirectory,
  startRig,
  workerEnvironment,
} from "../../support/workers/rig.ts";
import { awaitedLater } from "../../support/workers/awaited-later.ts";
import { runWorker } from "../../support/workers/worker-run.ts";
import { WorkerProcess } from "../../support/workers/worker-process.ts";

const signal = new AbortController().signal;
const patience = { timeout: 20_000, interval: 20 };

const profiles = JSON.stringify({
  version: 1,
  profiles: { debug: { extends: "standard", backend: "host" } },
});

const pythonTools = `
import os, subprocess

def look(ctx, of_host):
    ctx.send_status("looking")
    [path] = ctx.list_artifacts().values()
    with open(path) as file:
        ctx.save_artifact("copy.txt", file.read().upper().encode())
    return {"cwd": os.getcwd(), "sees_host": os.path.exists(of_host), "environment": sorted(os.environ)}

def imports():
    import beside
    return {"word": beside.WORD, "python_path": os.environ["PYTHONPATH"]}

def fails():
    raise ValueError(__file__)

def leaves_children(seconds):
    for command in (["sleep", seconds], ["setsid", "sh", "-c", f"cd /; sleep {seconds}; :"]):
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return {}

def stays(seconds):
    subprocess.Popen(["setsid", "sleep", seconds])
    os.execvp("sleep", ["sleep", seconds])
`;

const nodeTools = `
import { readFile } from "node:fs/promises";
import { ToolError, type ToolContext } from "secure-tool-runtime/tool";

export async function look({ of_host }: { readonly of_host: string }, ctx: ToolContext) {
  await ctx.saveArtifactText("copy.txt", "FROM NODE");
  const manifest = await readFile(of_host, "utf8");
  return { size: manifest.length, known: new ToolError("x") instanceof Error };
}
`;

/** Words that no other command line has. */
function uniqueSeconds(): string {
  return `86400.${Math.floor(Math.random() * 1e12)}`;
}

/** How many processes of this host have a text on their command line. */
async function processesWith(marker: string): Promise<number> {
  const ids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(
    ids.map((id) => readFile(`/proc/${id}/cmdline`, "utf8").catch(() => "")),
  );
  return lines.filter((line) => line.includes(marker)).length;
}

describe("a tool whose profile asks for the backend host", () => {
  let rig: Rig;
  let directory: string;

  beforeAll(async () => {
    directory = await reachableDirectory();
    const profilesFile = join(directory, "profiles.yaml");
    await writeFile(profilesFile, profiles);
    const module = "unsafe";
    const debug = { module, sandbox_profile: "debug" };
    rig = await startRig({
      tools: {
        look: { ...debug, function: "look" },
        imports: { ...debug, function: "imports" },
        fails: { ...debug, function: "fails" },
        leaves_children: { ...debug, function: "leaves_children" },
        stays: { ...debug, function: "stays" },
        node_look: nodeTool("unsafe.ts", "look", { sandbox_profile: "debug" }),
        isolated: { module, function: "look" },
      },
      files: { "unsafe.py": pythonTools, "beside.py": "WORD = 'found'\n" },
      nodeFiles: { "unsafe.ts": nodeTools },
      environment: { SANDBOX_ALLOW_UNSAFE: "1", SANDBOX_PROFILES_FILE: profilesFile },
    });
    const bytes = Buffer.from("text");
    const source = { sizeBytes: bytes.byteLength, open: () => Readable.from([bytes]) };
    await rig.store.save(rig.scope, "note.txt", source, { mimeType: "text/plain" }, signal);
  });
  afterAll(async () => {
    await rig[Symbol.asyncDispose]();
    await rm(directory, { recursive: true, force: true });
  });

  const note = new Map([["input", { filename: "note.txt", version: 0 }]]);

  /** What an answer says of the sandbox that ran. */
  async function callAndTell(tool: string, more: Parameters<Rig["call"]>[2] = {}) {
    const answer = await rig.call(
      tool,
      { of_host: rig.manifestPath },
      { references: note, ...more },
    );
    if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
    const { execution } = answer.response["result"] as {
      execution: {
        backend: string;
        profile: string;
        unenforced: string[];
        limits_enforced: object;
      };
    };
    return { answer, execution };
  }

  function warnings(): number {
    return rig.logLines.filter((line) => line.includes("tool.not_isolated")).length;
  }

  test("runs on the host, with its inputs, outputs and statuses as ever", async () => {
    const { answer } = await callAndTell("look");
    const { cwd, sees_host, environment } = answer.toolResult;
    expect(cwd).toMatch(new RegExp(`^${rig.config.sandbox.workDir}/`));
    expect(sees_host).toBe(true);
    expect(environment).not.toContain("SANDBOX_ALLOW_UNSAFE");
    const [copy] = answer.createdArtifacts;
    const stored = await rig.store.open(rig.scope, { ...copy!, version: undefined }, signal);
    expect(await text(stored.body)).toBe("TEXT");
  });

  test(
    "is said to be without isolation, in the log and in the answer of each call",
    { tags: "promise-S1" },
    async () => {
      const before = warnings();
      for (let call = 1; call <= 2; call++) {
        const { execution } = await callAndTell("look");
        expect(execution).toMatchObject({ backend: "host", profile: "debug" });
        expect(execution.unenforced).toContain("isolation");
        expect(execution.limits_enforced).toMatchObject({
          memory: { by: "none" },
          open_files: { by: "kernel" },
        });
        expect(warnings()).toBe(before + call);
      }
    },
  );

  test("finds its own modules, by the paths of the host", async () => {
    const answer = await rig.call("imports");
    expect(answer).toMatchObject({
      kind: "success",
      toolResult: { word: "found", python_path: rig.toolsDir },
    });
  });

  test("tells no path of the host when it fails", async () => {
    const answer = await rig.call("fails");
    expect(answer).toMatchObject({ kind: "error", message: "Tool raised ValueError: unsafe.py" });
  });

  test("is a Node tool as well, with what it imports of the runner", async () => {
    const { answer, execution } = await callAndTell("node_look");
    expect(answer.toolResult).toMatchObject({ known: true });
    expect(answer.createdArtifacts).toMatchObject([{ filename: "copy.txt" }]);
    expect(execution.backend).toBe("host");
  });

  test("leaves nothing running when it has returned", async () => {
    const seconds = uniqueSeconds();
    expect(await rig.call("leaves_children", { seconds })).toMatchObject({ kind: "success" });
    expect(await processesWith(seconds)).toBe(0);
  });

  test("is stopped at its time limit, with what it started", async () => {
    const seconds = uniqueSeconds();
    const answer = await rig.call("stays", { seconds }, { timeoutSeconds: 2 });
    expect(answer.kind).toBe("timed-out");
    expect(await processesWith(seconds)).toBe(0);
  });

  test(
    "is in a sandbox when the request asks for restrictive",
    { tags: "promise-S1" },
    async () => {
      const before = warnings();
      const { answer, execution } = await callAndTell("look", { profile: "restrictive" });
      expect(execution).toMatchObject({ backend: "bubblewrap", profile: "restrictive" });
      expect(execution.unenforced).not.toContain("isolation");
      expect(answer.toolResult).toMatchObject({ cwd: "/sandbox/work", sees_host: false });
      expect(warnings()).toBe(before);
    },
  );

  test("changes nothing for other tools", async () => {
    const { execution } = await callAndTell("isolated");
    expect(execution).toMatchObject({ backend: "bubblewrap", profile: "standard" });
    const asked = await callAndTell("isolated", { profile: "debug" });
    expect(asked.execution).toMatchObject({ backend: "bubblewrap", profile: "standard" });
  });

  test("is told at the start, with who keeps what", () => {
    const line = rig.logLines.find((candidate) => candidate.includes('"worker.ready"'));
    expect(JSON.parse(line ?? "{}")).toMatchObject({
      sandboxes: {
        bubblewrap: { technology: expect.stringMatching(/^bubblewrap \d/) as unknown },
        host: {
          technology: "the bare host",
          unenforced: ["isolation", "seccomp"],
          enforcement: { memoryBytes: "none", openFiles: "kernel" },
        },
      },
      profiles: expect.arrayContaining([
        expect.objectContaining({ name: "debug", backend: "host" }) as unknown,
      ]) as unknown,
    });
  });
});

describe("a worker whose profiles ask for the backend host", () => {
  /** The environment of a worker with one tool, and a broker for it. */
  async function prepare(content: string, environment: Readonly<Record<string, string>> = {}) {
    const base = await reachableDirectory();
    onTestFinished(() => rm(base, { recursive: true, force: true }));
    const broker = await startDevBroker();
    onTestFinished(() => broker[Symbol.asyncDispose]());
    const manifestPath = join(base, "manifest.yaml");
    const tool = { module: "unsafe", function: "stays", sandbox_profile: "debug" };
    await writeFile(manifestPath, manifestText({ stays: tool }));
    const toolsDir = join(base, "tools");
    await mkdir(toolsDir);
    await writeFile(join(toolsDir, "unsafe.py"), pythonTools);
    await writeFile(join(base, "profiles.yaml"), content);
    return {
      broker,
      environment: {
        ...workerEnvironment(broker, base, manifestPath, toolsDir),
        SANDBOX_PROFILES_FILE: join(base, "profiles.yaml"),
        ...environment,
      },
    };
  }

  test.each([undefined, "0"])("does not start with SANDBOX_ALLOW_UNSAFE=%s", async (allow) => {
    const { environment } = await prepare(
      profiles,
      allow === undefined ? {} : { SANDBOX_ALLOW_UNSAFE: allow },
    );
    const { code, output } = await runWorker(environment);
    expect(code).toBe(78);
    expect(output).toContain(
      "SANDBOX_ALLOW_UNSAFE: the backend host of the profile debug isolates nothing",
    );
  });

  test("does not start when the profile extends restrictive, whatever is allowed", async () => {
    const tight = profiles.replace("standard", "restrictive");
    const { environment } = await prepare(tight, { SANDBOX_ALLOW_UNSAFE: "1" });
    const { code, output } = await runWorker(environment);
    expect(code).toBe(78);
    expect(output).toContain("host isolates nothing");
  });

  test("leaves no tool running when it is killed", { tags: "full" }, async () => {
    const { broker, environment } = await prepare(profiles, { SANDBOX_ALLOW_UNSAFE: "1" });
    await using worker = new WorkerProcess(environment);
    await worker.says("worker.ready");
    const { host, port } = broker;
    await using agent = await Agent.connect({ host, port, namespace }, signal);
    const seconds = uniqueSeconds();
    const call = { tool: "stays", userId: "user-42", sessionId: "web-1", timeoutSeconds: 3_600 };
    const given = new AbortController();
    void awaitedLater(agent.call({ ...call, args: { seconds } }, { signal: given.signal }));
    await vi.waitFor(async () => expect(await processesWith(seconds)).toBe(2), patience);
    worker.child.kill("SIGKILL");
    await worker.exited;
    await vi.waitFor(async () => expect(await processesWith(seconds)).toBe(0), patience);
    given.abort(new Error("the worker is dead"));
  });
});
