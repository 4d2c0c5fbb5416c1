/**
 * Executables, end to end: what they are told, how they answer, how they end, and which are served.
 */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Rig, type RigTool, startRig } from "../../support/workers/rig.ts";

const example = (name: string): Promise<string> =>
  readFile(
    fileURLToPath(new URL(`../../../examples/tools/executable/${name}`, import.meta.url)),
    "utf8",
  );

/** A script that answers with what `body` puts into `$result`. */
const answering = (body: string): string => `#!/bin/sh
${body}
printf '{"result": %s, "error": ""}' "$result" >result.json
`;

const program = (executable: string, more: Partial<RigTool> = {}): RigTool => ({
  runtime: "executable",
  executable,
  start: "cold",
  ...more,
});

describe("an executable", () => {
  let rig: Rig;

  beforeAll(async () => {
    rig = await startRig({
      tools: {
        sha256: program("sha256"),
        told: program("told", { tool_dir: "kit", env: ["RIG_ALLOWED"] }),
        two: program("told", { tool_dir: "kit", tools: ["first", "second"] }),
        go_form: {
          runtime: "go",
          executable: "packed",
          tool_dir: "kit",
          resource_limits: { max_open_files: 77 },
        },
        fails: program("fails"),
        ends: program("ends"),
        patient: program("patient"),
        python: { function: "well" },
      },
      executables: {
        sha256: await example("sha256"),
        "kit/told": answering('result=$(cat "$1")'),
        "kit/python/bin/packed": answering(
          'result="{\\"files\\": \\"$(ulimit -n)\\", \\"path\\": \\"$PYTHONPATH\\", \\"self\\": \\"$0\\"}"',
        ),
        fails: `#!/bin/sh\necho '{"result": null, "error": "no such city"}' >result.json\n`,
        ends: "#!/bin/sh\necho 'out of paper' >&2\nexit 3\n",
        patient: `#!/bin/sh
trap 'echo "{\\"status\\": \\"stopping\\"}" >status.pipe; exit 0' TERM
echo '{"status": "waiting"}' >status.pipe
while :; do sleep 0.05; done
`,
      },
      environment: { RIG_ALLOWED: "shown", RIG_SECRET: "hidden" },
    });
  });
  afterAll(() => rig[Symbol.asyncDispose]());

  test("gets an artifact as a file, tells how far it is, and answers", async () => {
    const statuses: string[] = [];
    const file = {
      filename: "a.txt",
      bytes: Buffer.from("abc"),
      mimeType: "text/plain",
      version: 0,
    };
    const answer = await rig.agent.call(
      {
        tool: "sha256",
        args: { file: "a.txt" },
        preloaded: new Map([["file", file]]),
        userId: "u",
        sessionId: "s",
      },
      { onStatus: (status) => statuses.push(status) },
    );
    expect(answer).toMatchObject({
      kind: "success",
      toolResult: {
        sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        bytes: 3,
      },
    });
    expect(statuses).toEqual(["Reading the file"]);
  });

  test("is told its call by the file that its argument names", async () => {
    const args = { city: 'Oslo "1"', days: 3 };
    const answer = await rig.call("told", args, { toolConfig: { units: "metric" } });
    expect(answer).toMatchObject({ kind: "success" });
    const work = "/sandbox/work";
    expect(answer.kind === "success" && answer.toolResult).toEqual({
      tool_name: "told",
      args,
      tool_config: { units: "metric" },
      artifact_paths: {},
      artifact_metadata: {},
      status_pipe: `${work}/status.pipe`,
      result_file: `${work}/result.json`,
      output_dir: `${work}/output`,
      tools_dir: "/tools/executable/kit",
      task_id: expect.any(String),
      user_id: "user-42",
      session_id: "web-1",
      app_name: expect.any(String),
      max_result_bytes: expect.any(Number),
      deadline_ms: expect.any(Number),
    });
  });

  test("may provide several tools, each one of its own on the broker", async () => {
    for (const name of ["first", "second"]) {
      expect(await rig.call(name)).toMatchObject({ toolResult: { tool_name: name } });
    }
  });

  test("as the Go runtime's manifests give it is found in python/bin, with its limits", async () => {
    expect(await rig.call("go_form")).toMatchObject({
      toolResult: {
        files: "77",
        path: "/tools/executable/kit/python",
        self: "/tools/executable/kit/python/bin/packed",
      },
    });
  });

  test.each([
    ["fails", "TOOL_ERROR", "no such city"],
    ["ends", "SANDBOX_FAILED", "The tool's process exited with code 3: out of paper"],
  ])("that fails is answered so: %s", async (tool, code, message) => {
    expect(await rig.call(tool)).toMatchObject({ kind: "error", code, message });
  });

  test("gets SIGTERM at its time limit, before it is killed", async () => {
    const statuses: string[] = [];
    const answer = await rig.agent.call(
      { tool: "patient", args: {}, timeoutSeconds: 1, userId: "u", sessionId: "s" },
      { onStatus: (status) => statuses.push(status) },
    );
    expect(answer).toMatchObject({ kind: "timed-out" });
    expect(statuses).toEqual(["waiting", "stopping"]);
  });

  test("is served beside tools of modules", async () => {
    expect(await rig.call("python", { message: "x" })).toMatchObject({ kind: "success" });
  });
});
