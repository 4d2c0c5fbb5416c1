/**
 * The operator's own profiles, from their file to the inside of a sandbox, and what becomes of a
 * file that is wrong.
 */
import { writeFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startDevBroker } from "../../../harness/dev-broker/dev-broker.ts";
import {
  type Rig,
  manifestText,
  reachableDirectory,
  startRig,
  workerEnvironment,
} from "../../support/workers/rig.ts";
import { runWorker } from "../../support/workers/worker-run.ts";

const MiB = 1024 * 1024;

const profilesText = `version: 1
profiles:
  roomy:
    extends: standard
    network: none
    has_var: true
    terminals: true
    limits: {memory_mb: 2048, open_files: 300, processes: 40, file_size_mb: 3}
  tiny:
    extends: restrictive
    limits: {memory_mb: 256, file_size_mb: 2}
`;

let base: string;
let profilesPath: string;
beforeAll(async () => {
  base = await reachableDirectory();
  profilesPath = join(base, "profiles.yaml");
  await writeFile(profilesPath, profilesText);
});
afterAll(() => rm(base, { recursive: true, force: true }));

const looking = { module: "looking", function: "limits" };

describe("an own profile", () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig({
      tools: { named: { ...looking, sandbox_profile: "roomy" }, unnamed: looking },
      environment: { SANDBOX_PROFILES_FILE: profilesPath, SANDBOX_DEFAULT_PROFILE: "roomy" },
    });
  });
  afterAll(() => rig[Symbol.asyncDispose]());

  const roomy = {
    memory: 2048 * MiB,
    file_size: 3 * MiB,
    open_files: 300,
    processes: 40,
    has_network: false,
    has_var: true,
    has_terminals: true,
  };

  test.each(["named", "unnamed"])(
    "is what a tool runs under, %s in the manifest, and what the answer says",
    async (tool) => {
      const answer = await rig.call(tool);
      expect(answer).toMatchObject({ kind: "success", toolResult: roomy });
      expect(answer).toHaveProperty("response.result.execution.profile", "roomy");
      expect(answer).toHaveProperty(
        "response.result.execution.limits_enforced.memory.bound",
        2048 * MiB,
      );
    },
  );

  test("can be asked for where it is tighter than the default, and adds nothing", async () => {
    expect(await rig.call("unnamed", {}, { profile: "tiny" })).toMatchObject({
      toolResult: {
        ...{ memory: 256 * MiB, file_size: 2 * MiB, open_files: 128, processes: 32 },
        ...{ has_network: false, has_var: false, has_terminals: false },
      },
    });
    expect(await rig.call("named", {}, { profile: "tiny" })).toMatchObject({ toolResult: roomy });
    expect(await rig.call("unnamed", {}, { profile: "permissive" })).toMatchObject({
      toolResult: roomy,
    });
  });

  test("that does not exist is refused by the names of those that do", async () => {
    expect(await rig.call("unnamed", {}, { profile: "romy" })).toMatchObject({
      kind: "error",
      code: "INVALID_REQUEST",
      message: expect.stringContaining(
        "expected one of restrictive, standard, permissive, roomy, tiny",
      ) as string,
    });
  });
});

describe("a worker", () => {
  async function startWorker(
    changes: Readonly<Record<string, string>>,
    argv: readonly string[] = [],
  ) {
    const directory = await reachableDirectory();
    await using broker = await startDevBroker();
    const manifestPath = join(directory, "manifest.yaml");
    const tools = { named: { ...looking, sandbox_profile: "roomy" } };
    await writeFile(manifestPath, manifestText(tools));
    const environment = {
      ...workerEnvironment(broker, directory, manifestPath, import.meta.dirname),
      SANDBOX_PROFILES_FILE: profilesPath,
      LOG_LEVEL: "silent",
      ...changes,
    };
    const ending = await runWorker(environment, argv);
    await rm(directory, { recursive: true, force: true });
    return ending;
  }

  test("shows own profiles with --check", async () => {
    const { code, output } = await startWorker({}, ["--check"]);
    expect({ code, output }).toMatchObject({ code: 0 });
    const facts = JSON.parse(output) as { profiles: { name: string; network: string }[] };
    expect(facts.profiles.map(({ name }) => name)).toEqual([
      ...["restrictive", "standard", "permissive", "roomy", "tiny"],
    ]);
    expect(facts.profiles[3]).toMatchObject({ network: "none", limits: { openFiles: 300 } });
  });

  test("ends with 78 and every problem of a file that is wrong", async () => {
    const path = join(base, "wrong.yaml");
    await writeFile(
      path,
      "version: 1\nprofiles:\n  a: {extends: lax}\n  standard: {extends: standard}\n",
    );
    expect(await startWorker({ SANDBOX_PROFILES_FILE: path })).toEqual({
      code: 78,
      output: `str-worker: ${path}:3:16: profile "a": extends: expected one of restrictive, standard, permissive, found "lax"
${path}:4:3: profile "standard": is built in and cannot be defined anew; choose another name
`,
    });
  });

  test.each([
    ["SANDBOX_PROFILES_FILE", "cannot be read: ENOENT"],
    ["MANIFEST_PATH", "does not exist"],
  ])("ends with 78 and names %s when there is no such file", async (variable, problem) => {
    const path = join(base, "missing.yaml");
    expect(await startWorker({ [variable]: path })).toEqual({
      code: 78,
      output: `str-worker: ${variable}: ${path}: ${problem}\n`,
    });
  });

  test("ends with 78 when the default is none of its profiles", async () => {
    expect(await startWorker({ SANDBOX_DEFAULT_PROFILE: "huge" })).toEqual({
      code: 78,
      output:
        'str-worker: SANDBOX_DEFAULT_PROFILE: "huge" is not a profile; accepted: one of restrictive, standard, permissive, roomy, tiny\n',
    });
  });
});
