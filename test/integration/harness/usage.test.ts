/**
 * What the command line refuses, and what help shows: no broker, no worker.
 */
import { mkdtemp, readdir, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import packageJson from "../../../package.json" with { type: "json" };
import { examplePythonDir } from "../../../harness/package.ts";
import { runCli, runCliProcess } from "./cli-process.ts";

let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "usage-test-"));
  await writeFile(join(directory, "small.txt"), "small");
  await writeFile(join(directory, "large.bin"), "");
  await truncate(join(directory, "large.bin"), 7_500_001);
});
afterAll(() => rm(directory, { recursive: true }));

const filesystem = {
  ARTIFACT_SERVICE_TYPE: "filesystem",
  ARTIFACT_BASE_PATH: "/nonexistent/store",
};

interface Misuse {
  readonly args: readonly string[];
  readonly says: RegExp;
  readonly environment?: Record<string, string>;
}

const call = ["invoke", "--tool", "any"];
const exampleTools = join(examplePythonDir, "example_tools.py");
const runEcho = ["tool", "run", `${exampleTools}:echo_tool`];

const misuses: Record<string, Misuse> = {
  "no command": { args: [], says: /Usage: harness/ },
  "an unknown command": { args: ["inwoke"], says: /unknown command 'inwoke'/ },
  "no tool": { args: ["invoke"], says: /required option '--tool <name>' not specified/ },
  "a tool name that is no topic level": {
    args: ["invoke", "--tool", "a/b"],
    says: /characters other than/,
  },
  "a stray argument": { args: [...call, "extra"], says: /too many arguments/ },
  "arguments that are not JSON": { args: [...call, "--args", "{"], says: /not valid JSON/ },
  "a timeout of nothing": { args: [...call, "--timeout", "0"], says: /whole seconds, 1 to 86400/ },
  "a trace context of another version": {
    args: [...call, "--traceparent", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],
    says: /It is no W3C trace context: 00-TRACE-PARENT-FLAGS/,
  },
  "a profile without a name": { args: [...call, "--profile", ""], says: /It is empty/ },
  "a profile that a sandbox of our own cannot have": {
    args: [...runEcho, "--profile", "lax"],
    says: /--profile: expected one of restrictive, standard, permissive.*, found "lax"/,
  },
  "profiles of one's own that are not all right": {
    args: runEcho,
    environment: { SANDBOX_PROFILES_FILE: "/nonexistent/profiles.yaml" },
    says: /\/nonexistent\/profiles\.yaml: cannot be read: ENOENT/,
  },
  "such profiles for the manifest of a new tool": {
    args: ["tool", "new", "x", "--runtime", "node", "--dir", "/nonexistent/tools"],
    environment: { SANDBOX_PROFILES_FILE: "profiles.yaml" },
    says: /SANDBOX_PROFILES_FILE: "profiles\.yaml" is not accepted; accepted: an absolute path/,
  },
  "a namespace with a wildcard": {
    args: [...call, "--namespace", "a/>"],
    says: /characters other/,
  },
  "such a namespace in the environment": {
    args: call,
    environment: { SAM_NAMESPACE: "a/>" },
    says: /SAM_NAMESPACE "a\/>" has characters other/,
  },
  "a port for somebody else's broker": {
    args: [...call, "--broker", "h:1", "--port", "1"],
    says: /'--port <port>' cannot be used with option '--broker/,
  },
  "a broker that it does not understand, without a word of its password": {
    args: [...call, "--broker", "redis://user:s3cret@h:1"],
    says: /^(?!.*s3cret).*broker: what is given is not accepted; accepted: HOST:PORT/,
  },
  "a kind of broker whose variables are not set": {
    args: ["listen", "--broker", "amqp"],
    says: /broker: amqp needs AMQP_URL, which is not set/,
  },
  "an artifact without a parameter": {
    args: [...call, "--artifact", "x.txt"],
    says: /PARAM=FILE/,
  },
  "an artifact without a file": {
    args: [...call, "--artifact", "p=/nonexistent"],
    environment: filesystem,
    says: /--artifact p: \/nonexistent does not exist/,
  },
  "a directory as an artifact": {
    args: [...call, "--artifact", "p=/"],
    environment: filesystem,
    says: /--artifact p: \/ is not a regular file/,
  },
  "a store with an unknown kind": {
    args: [...call, "--out", "results"],
    environment: { ARTIFACT_SERVICE_TYPE: "s4" },
    says: /ARTIFACT_SERVICE_TYPE: "s4" is not accepted/,
  },
  "a session that no store accepts": {
    args: [...call, "--out", "results", "--session", "user"],
    environment: filesystem,
    says: /The session "user" is refused/,
  },
  "downloads from a memory store": {
    args: [...call, "--out", "results"],
    says: /--out needs a store that the worker shares, but ARTIFACT_SERVICE_TYPE is memory/,
  },
  "no file of a tool": { args: ["tool", "run"], says: /missing required argument 'target'/ },
  "a target that is not there": {
    args: ["tool", "run", "words.py"],
    says: /there is no "words\.py"; accepted: FILE:FUNCTION or FILE:CLASS/,
  },
  "a tool that is not there": {
    args: ["tool", "run", "/nonexistent/words.py:count"],
    says: /\/nonexistent\/words\.py does not exist/,
  },
  "a version of an artifact where there is no store": {
    args: [...runEcho, "--artifact", "p=report.csv:3"],
    says: /--artifact p: report\.csv:3 does not exist/,
  },
  "a variable that is not set": {
    args: [...runEcho, "--env", "NO_SUCH_VARIABLE"],
    says: /--env NO_SUCH_VARIABLE: there is no such variable/,
  },
  "a variable that the sandbox sets itself": {
    args: [...runEcho, "--env", "PATH"],
    says: /"PATH" cannot be passed on/,
  },
  "a name that is no function's": {
    args: [...runEcho.slice(0, 2), `${exampleTools}:a-b`],
    says: /function: expected the name of a Python function/,
  },
  "a sandbox that no worker could have": {
    args: runEcho,
    environment: { SANDBOX_UID: "nobody" },
    says: /SANDBOX_UID: "nobody" is not accepted/,
  },
  "a new tool without a language": {
    args: ["tool", "new", "x"],
    says: /required option '--runtime <language>' not specified/,
  },
  "a new tool with a name that no manifest takes": {
    args: ["tool", "new", "_x", "--runtime", "node"],
    says: /The tool name begins with neither letter nor digit/,
  },
  "a file to save that is not there": {
    args: ["artifact", "put", "/nonexistent/a.txt"],
    environment: filesystem,
    says: /\/nonexistent\/a\.txt does not exist/,
  },
  "a directory to save": {
    args: ["artifact", "put", "/"],
    environment: filesystem,
    says: /\/ is not a regular file; - saves standard input/,
  },
  "standard input without a name": {
    args: ["artifact", "put", "-"],
    environment: filesystem,
    says: /standard input needs --name/,
  },
  "a name that no store accepts": {
    args: ["artifact", "get", "a/b"],
    environment: filesystem,
    says: /The filename "a\/b" is refused: it holds a slash/,
  },
  "JSON between the bytes of an artifact": {
    args: ["artifact", "get", "a.txt", "--output", "-", "--json"],
    environment: filesystem,
    says: /--json cannot go with --output -/,
  },
  "artifacts of a memory store": {
    args: ["artifact", "list"],
    says: /harness artifact needs a store that the worker shares/,
  },
  "a store that the demo does not have": {
    args: ["demo", "--store", "memory"],
    says: /Allowed choices are filesystem, s3, gcs/,
  },
  "a pattern that is empty": { args: ["listen", ""], says: /is empty/ },
};

describe("the command line refuses", { timeout: 60_000 }, () => {
  test.for(Object.entries(misuses))(
    "%s, with exit code 2",
    async ([, { args, environment, says }]) => {
      const { exitCode, stdout, stderr } = await runCli(args, environment);
      expect(stderr).toMatch(says);
      expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
    },
  );

  test("a parameter that is both in the store and in the request", async () => {
    const file = join(directory, "small.txt");
    const both = ["--artifact", `p=${file}`, "--preload", `p=${file}`];
    const { exitCode, stderr } = await runCli([...call, ...both], filesystem);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("p is given by both --artifact and --preload");
  });

  test("to save an artifact in a memory store, and says what to do instead", async () => {
    const artifact = ["--artifact", `p=${join(directory, "small.txt")}`];
    const { exitCode, stderr } = await runCli([...call, ...artifact]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("a memory store lives inside the worker's process");
    expect(stderr).toContain("ARTIFACT_SERVICE_TYPE=filesystem");
    expect(stderr).toContain("--preload");
  });

  test("to refer to an artifact of a memory store, where nobody else can have saved it", async () => {
    const { exitCode, stderr } = await runCli([...call, "--artifact", "p=report.csv:3"]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("a memory store lives inside the worker's process");
  });

  test("to preload more than a request can have, and names the sizes", async () => {
    const preload = ["--preload", `p=${join(directory, "large.bin")}`];
    const { exitCode, stderr } = await runCli([...call, ...preload]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("has 7500001 bytes, 10000004 of them as base64");
    expect(stderr).toContain("at most 10000000");
  });
});

describe("help", { timeout: 60_000 }, () => {
  test.for([
    "invoke",
    "dev-broker",
    "listen",
    "demo",
    "dev",
    "tool run",
    "tool new",
    "artifact put",
    "artifact get",
    "artifact list",
    "artifact versions",
  ])("of %s has an example and exits with 0", async (command) => {
    const { exitCode, stdout, stderr } = await runCli([...command.split(" "), "--help"]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(stdout).toMatch(new RegExp(`Examples?:\n  harness ${command}`));
  });

  test("of the program names every command", async () => {
    const { exitCode, stdout } = await runCli(["--help"]);
    expect(exitCode).toBe(0);
    for (const command of ["invoke", "dev-broker", "listen", "demo", "dev", "tool", "artifact"]) {
      expect(stdout).toContain(`  ${command} `);
    }
  });

  test("is not needed to learn the version", async () => {
    const { exitCode, stdout } = await runCli(["--version"]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: `${packageJson.version}\n` });
  });
});

test.each([
  ["harness", 5, 80],
  ["str-worker", 2, 20],
])("%s loads what it needs, and Node keeps its compiled code", async (program, least, most) => {
  const cache = join(directory, `cache-${program}`);
  const path = join(import.meta.dirname, `../../../bin/${program}.mjs`);
  const environment = { XDG_CACHE_HOME: cache, NODE_COMPILE_CACHE: "" };
  const { exitCode } = await runCliProcess(["--version"], environment, {
    command: [process.execPath, path],
  });
  expect(exitCode).toBe(0);
  const kept = await readdir(join(cache, "secure-tool-runtime", "compiled"), { recursive: true });
  const entries = kept.filter((path) => path.includes("/"));
  expect(entries.length).toBeGreaterThan(least);
  expect(entries.length).toBeLessThan(most);
});
