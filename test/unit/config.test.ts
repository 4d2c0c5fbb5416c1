/**
 * The environment as configuration.
 */
import { describe, expect, test } from "vitest";
import { ConfigError, type Environment, readConfig } from "../../worker/config.ts";
import { describeVariables, variables } from "../../worker/variables.ts";

/** What has to be set. */
const required = { SAM_NAMESPACE: "ed_test/", DEV_BROKER_HOST: "broker" };

function problemsOf(environment: Environment): readonly string[] {
  try {
    readConfig(environment);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    const { problems, message } = error as ConfigError;
    expect(message).toBe(problems.join("\n"));
    return problems;
  }
  return [];
}

describe("a configuration of nothing but what is required", () => {
  test("has the defaults of the design document", () => {
    expect(readConfig(required)).toEqual({
      namespace: "ed_test/",
      workerId: "sandbox-worker-001",
      broker: {
        kind: "dev",
        host: "broker",
        port: 55_555,
        connectRetries: 0,
        connectRetryDelayMs: 3_000,
      },
      manifestPath: "/tools/manifest.yaml",
      toolsPythonDir: "/tools/python",
      toolsNodeDir: "/tools/node",
      defaultTimeoutSeconds: 300,
      sandbox: {
        bwrapBin: "/usr/bin/bwrap",
        pythonBin: "/usr/bin/python3",
        nodeBin: process.execPath,
        workDir: "/sandbox/work",
        defaultProfile: "standard",
        profilesFile: undefined,
        allowedMounts: [],
        allowedDevices: [],
        allowUnsafe: false,
        minimum: [
          ...["user-namespaces", "nested-namespaces", "proc", "network-namespace"],
          ...["seccomp", "rlimits", "tmpfs", "guard"],
        ],
        maxConcurrent: 4,
        maxQueued: 100,
        maxWarmBytes: 512 * 1024 * 1024,
        uid: 60_001,
        minFreeDiskBytes: 500 * 1024 * 1024,
      },
      artifacts: {
        store: { kind: "memory" },
        scope: { kind: "namespace", namespace: "ed_test/" },
      },
      healthPort: 8081,
      drainTimeoutSeconds: 30,
      logLevel: "info",
    });
  });

  test("is the same when every other variable is empty", () => {
    const empty = Object.fromEntries(Object.keys(variables.shape).map((name) => [name, ""]));
    expect(readConfig({ ...empty, ...required })).toEqual(readConfig(required));
  });

  test("is the same with variables that are somebody else's", () => {
    expect(
      readConfig({ ...required, PATH: "/bin", SAM_NAMESPACE_2: "x", HOME: undefined }),
    ).toEqual(readConfig(required));
  });
});

describe("every variable", () => {
  test("arrives where it is used", () => {
    const config = readConfig({
      SAM_NAMESPACE: "prod/eu",
      SAM_WORKER_ID: "worker-7",
      DEV_BROKER_HOST: "10.0.0.1",
      DEV_BROKER_PORT: "55554",
      CONNECT_RETRIES: "5",
      CONNECT_RETRY_DELAY_MS: "250",
      MANIFEST_PATH: "/etc/tools.yaml",
      TOOLS_PYTHON_DIR: "/srv/python",
      TOOLS_NODE_DIR: "/srv/node",
      DEFAULT_TIMEOUT_SECONDS: "60",
      SANDBOX_BWRAP_BIN: "/opt/bwrap",
      SANDBOX_PYTHON_BIN: "/opt/python3",
      SANDBOX_NODE_BIN: "/opt/node",
      SANDBOX_WORK_DIR: "/var/work",
      SANDBOX_DEFAULT_PROFILE: "my-own",
      SANDBOX_PROFILES_FILE: "/etc/profiles.yaml",
      SANDBOX_ALLOWED_MOUNTS: "/srv/data:/srv/models/",
      SANDBOX_ALLOWED_DEVICES: "/dev/nvidia0",
      SANDBOX_MINIMUM: "seccomp,cgroups",
      SANDBOX_MAX_CONCURRENT: "16",
      SANDBOX_MAX_QUEUED: "0",
      WARM_MAX_MEMORY_MB: "64",
      SANDBOX_UID: "1234",
      SANDBOX_MIN_FREE_DISK_MB: "0",
      ARTIFACT_SERVICE_TYPE: "filesystem",
      ARTIFACT_BASE_PATH: "/srv/artifacts",
      ARTIFACT_SCOPE: "custom",
      ARTIFACT_SCOPE_VALUE: "shared",
      HEALTH_PORT: "0",
      DRAIN_TIMEOUT_SECONDS: "0",
      LOG_LEVEL: "debug",
    });
    expect(config).toEqual({
      namespace: "prod/eu",
      workerId: "worker-7",
      broker: {
        kind: "dev",
        host: "10.0.0.1",
        port: 55_554,
        connectRetries: 5,
        connectRetryDelayMs: 250,
      },
      manifestPath: "/etc/tools.yaml",
      toolsPythonDir: "/srv/python",
      toolsNodeDir: "/srv/node",
      defaultTimeoutSeconds: 60,
      sandbox: {
        bwrapBin: "/opt/bwrap",
        pythonBin: "/opt/python3",
        nodeBin: "/opt/node",
        workDir: "/var/work",
        defaultProfile: "my-own",
        profilesFile: "/etc/profiles.yaml",
        allowedMounts: ["/srv/data", "/srv/models/"],
        allowedDevices: ["/dev/nvidia0"],
        allowUnsafe: false,
        minimum: ["seccomp", "cgroups"],
        maxConcurrent: 16,
        maxQueued: 0,
        maxWarmBytes: 64 * 1024 * 1024,
        uid: 1234,
        minFreeDiskBytes: 0,
      },
      artifacts: {
        store: { kind: "filesystem", basePath: "/srv/artifacts" },
        scope: { kind: "custom", value: "shared" },
      },
      healthPort: 0,
      drainTimeoutSeconds: 0,
      logLevel: "debug",
    });
  });

  test("can scope artifacts by agent", () => {
    expect(readConfig({ ...required, ARTIFACT_SCOPE: "app" }).artifacts.scope).toEqual({
      kind: "app",
    });
  });
});

const port = "a port, 1 to 65535";
const path = "an absolute path";
const paths = "absolute paths with `:` between them";
const profile = "one of restrictive, standard, permissive, or a profile of `SANDBOX_PROFILES_FILE`";
const namespace =
  "the agents' namespace, spelled exactly as they spell it: letters, digits, `.`, `_`, `-` and `/`";

describe("a variable that cannot be used", () => {
  test.each([
    ["SAM_NAMESPACE", "ed test", namespace],
    ["SAM_NAMESPACE", "a//b", namespace],
    ["SAM_NAMESPACE", "a/>", namespace],
    ["SAM_NAMESPACE", "../b", namespace],
    ["SAM_NAMESPACE", "x".repeat(111), namespace],
    ["SAM_WORKER_ID", "a b", "1 to 100 letters, digits, `.`, `_` or `-`"],
    ["SAM_WORKER_ID", "x".repeat(101), "1 to 100 letters, digits, `.`, `_` or `-`"],
    ["DEV_BROKER_PORT", "0", port],
    ["DEV_BROKER_PORT", "65536", port],
    ["DEV_BROKER_PORT", "tcp", port],
    ["CONNECT_RETRIES", "-1", "a whole number, 0 to 10000"],
    ["CONNECT_RETRIES", "10001", "a whole number, 0 to 10000"],
    ["CONNECT_RETRY_DELAY_MS", "0", "milliseconds, 1 to 3600000"],
    ["CONNECT_RETRY_DELAY_MS", "1.5", "milliseconds, 1 to 3600000"],
    ["MANIFEST_PATH", "manifest.yaml", path],
    ["TOOLS_PYTHON_DIR", "./python", path],
    ["TOOLS_NODE_DIR", "node", path],
    ["DEFAULT_TIMEOUT_SECONDS", "0", "seconds, 1 to 86400"],
    ["DEFAULT_TIMEOUT_SECONDS", "86401", "seconds, 1 to 86400"],
    ["DEFAULT_TIMEOUT_SECONDS", "1e3", "seconds, 1 to 86400"],
    ["DEFAULT_TIMEOUT_SECONDS", " 30", "seconds, 1 to 86400"],
    ["SANDBOX_BWRAP_BIN", "bwrap", path],
    ["SANDBOX_PYTHON_BIN", "python3", path],
    ["SANDBOX_NODE_BIN", "node", path],
    ["SANDBOX_WORK_DIR", "work", path],
    ["SANDBOX_DEFAULT_PROFILE", "lax", profile],
    ["SANDBOX_DEFAULT_PROFILE", "no name", profile],
    ["SANDBOX_PROFILES_FILE", "profiles.yaml", path],
    ["SANDBOX_ALLOWED_MOUNTS", "/a:b", paths],
    ["SANDBOX_ALLOWED_MOUNTS", "/a:", paths],
    ["SANDBOX_ALLOWED_DEVICES", "nvidia0", paths],
    ["SANDBOX_MAX_CONCURRENT", "0", "a whole number, 1 to 1000"],
    ["SANDBOX_MAX_CONCURRENT", "1001", "a whole number, 1 to 1000"],
    ["SANDBOX_MAX_QUEUED", "10001", "a whole number, 0 to 10000"],
    ["WARM_MAX_MEMORY_MB", "-1", "megabytes"],
    ["WARM_MAX_MEMORY_MB", "0.5", "megabytes"],
    ["SANDBOX_UID", "0", "a user id above 0"],
    ["SANDBOX_UID", "nobody", "a user id above 0"],
    ["SANDBOX_MIN_FREE_DISK_MB", "-5", "megabytes"],
    ["SANDBOX_MIN_FREE_DISK_MB", "99999999999999999999", "megabytes"],
    ["ARTIFACT_SERVICE_TYPE", "s3", "one of memory, filesystem"],
    ["ARTIFACT_BASE_PATH", "artifacts", path],
    ["ARTIFACT_SCOPE", "global", "one of namespace, app, custom"],
    ["HEALTH_PORT", "65536", "a port, 1 to 65535, or 0 for none"],
    ["DRAIN_TIMEOUT_SECONDS", "86401", "seconds, 0 to 86400"],
    ["DRAIN_TIMEOUT_SECONDS", "30s", "seconds, 0 to 86400"],
    ["LOG_LEVEL", "loud", "one of trace, debug, info, warn, error, fatal, silent"],
  ])("%s: %j is named with what is accepted", (name, value, accepted) => {
    expect(problemsOf({ ...required, [name]: value })).toEqual([
      `${name}: ${JSON.stringify(value)} is not accepted; accepted: ${accepted}`,
    ]);
  });

  test.each([
    ["SAM_NAMESPACE", namespace],
    ["DEV_BROKER_HOST", "host name or address of a DevBroker"],
  ])("%s is named when it is not set, and when it is empty", (name, accepted) => {
    const expected = [`${name}: is not set; accepted: ${accepted}`];
    expect(problemsOf({ ...required, [name]: undefined })).toEqual(expected);
    expect(problemsOf({ ...required, [name]: "" })).toEqual(expected);
  });

  test("ARTIFACT_SCOPE_VALUE is refused when no store could keep artifacts below it", () => {
    const custom = { ...required, ARTIFACT_SCOPE: "custom" };
    expect(problemsOf({ ...custom, ARTIFACT_SCOPE_VALUE: ".." })).toEqual([
      'ARTIFACT_SCOPE_VALUE: ".." is not accepted; accepted: a name',
    ]);
  });

  test("ARTIFACT_SCOPE_VALUE is named when a custom scope has none", () => {
    const expected = ["ARTIFACT_SCOPE_VALUE: is not set; accepted: a name"];
    expect(problemsOf({ ...required, ARTIFACT_SCOPE: "custom" })).toEqual(expected);
    expect(problemsOf({ ...required, ARTIFACT_SCOPE: "custom", ARTIFACT_SCOPE_VALUE: "" })).toEqual(
      expected,
    );
  });

  test("is named once, together with all the others", () => {
    const names = problemsOf({
      DEV_BROKER_PORT: "-1",
      SANDBOX_DEFAULT_PROFILE: "lax",
      ARTIFACT_SCOPE: "custom",
    }).map((problem) => problem.split(":")[0]);
    expect(names).toEqual([
      "SAM_NAMESPACE",
      "DEV_BROKER_HOST",
      "DEV_BROKER_PORT",
      "SANDBOX_DEFAULT_PROFILE",
      "ARTIFACT_SCOPE_VALUE",
    ]);
  });
});

describe("the table of variables", () => {
  const rows = describeVariables();

  test("has a row for each, in the order of the documentation", () => {
    expect(rows.map(({ name }) => name)).toEqual(Object.keys(variables.shape));
  });

  test("says of each what it means and what is accepted", () => {
    for (const row of rows) {
      expect(row.description, row.name).toMatch(/^[A-Z`].+\.$/);
      expect(row.accepted, row.name).not.toBe("");
    }
  });

  test("names defaults that are the defaults", () => {
    const defaults = rows.flatMap(({ name, defaultText }) =>
      defaultText === undefined ? [] : [[name, defaultText] as const],
    );
    expect(readConfig({ ...Object.fromEntries(defaults), ...required })).toEqual(
      readConfig(required),
    );
    const without = rows.filter(({ defaultText }) => defaultText === undefined);
    expect(without.map(({ name }) => name)).toEqual([
      "SAM_NAMESPACE",
      "DEV_BROKER_HOST",
      "SANDBOX_NODE_BIN",
      "SANDBOX_PROFILES_FILE",
      "SANDBOX_ALLOWED_MOUNTS",
      "SANDBOX_ALLOWED_DEVICES",
      "ARTIFACT_SCOPE_VALUE",
    ]);
    expect(defaults).toContainEqual(["SANDBOX_MIN_FREE_DISK_MB", "500"]);
  });
});
