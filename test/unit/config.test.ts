/**
 * The environment as configuration.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ConfigError, type Environment, readConfig } from "../../worker/config/config.ts";
import { ownPaths, secretFileVariables } from "../../worker/config/secret-files.ts";
import { misspeltVariables, unknownVariables } from "../../worker/config/variable-names.ts";
import { describeVariables, variables } from "../../worker/config/variables.ts";
import { publicNetwork } from "../../worker/protocol/network-rules.ts";

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
      group: "default",
      queues: new Map([["default", 4]]),
      manifestPath: "/tools/manifest.yaml",
      toolsPythonDir: "/tools/python",
      toolsNodeDir: "/tools/node",
      toolsExecutableDir: "/tools/executable",
      describedBy: "code",
      isDiscoverable: true,
      toolsetsDir: undefined,
      defaultTimeoutSeconds: 300,
      maxRuns: 4,
      sandbox: {
        bwrapBin: "/usr/bin/bwrap",
        runscBin: "/usr/bin/runsc",
        ctrBin: "/usr/bin/ctr",
        containerdAddress: "/run/containerd/containerd.sock",
        kataRuntime: "io.containerd.kata.v2",
        dockerSocket: "/var/run/docker.sock",
        pythonBin: "/usr/bin/python3",
        nodeBin: process.execPath,
        pythons: new Map(),
        downloadsPythons: false,
        nodes: new Map(),
        workDir: "/sandbox/work",
        defaultProfile: "standard",
        profilesFile: undefined,
        defaultNetwork: publicNetwork,
        hostNetwork: "host",
        allowedMounts: [],
        allowedDevices: [],
        credentialSources: [{ kind: "file", name: "/run/secrets" }],
        allowUnsafe: false,
        minimum: [
          ...["user-namespaces", "nested-namespaces", "proc", "network-namespace"],
          ...["seccomp", "rlimits", "tmpfs", "guard"],
        ],
        maxConcurrent: 4,
        maxQueued: 100,
        maxSuspended: 16,
        maxWarmBytes: 512 * 1024 * 1024,
        uid: 60_001,
        minFreeDiskBytes: 500 * 1024 * 1024,
      },
      packages: {
        policy: "install",
        allowed: undefined,
        directory: "/sandbox/environments",
        keepMs: 30 * 86_400_000,
        maxBytes: 20_000 * 1024 * 1024,
        cacheMaxBytes: 5_000 * 1024 * 1024,
        timeoutSeconds: 600,
        memoryBytes: 2048 * 1024 * 1024,
        diskBytes: 4096 * 1024 * 1024,
        wheelsDir: "/tools/wheels",
        netrcFile: undefined,
        npmrcFile: undefined,
        uvBin: undefined,
      },
      artifacts: {
        store: { kind: "memory" },
        scope: { kind: "namespace", namespace: "ed_test/" },
        limits: { maxBytes: 5_368_709_120, callMaxBytes: 10_737_418_240, maxOutputs: 100 },
      },
      healthPort: 8081,
      healthHost: undefined,
      drainTimeoutSeconds: 30,
      toolLogs: { to: "off", maxBytes: 16 * 1024 },
      logLevel: "info",
      logFormat: "auto",
    });
  });

  test("is the same when every other variable is empty", () => {
    const empty = Object.fromEntries(Object.keys(variables.shape).map((name) => [name, ""]));
    expect(readConfig({ ...empty, ...required })).toEqual(readConfig(required));
  });

  test("is the same with variables that are somebody else's", () => {
    expect(
      readConfig({ ...required, PATH: "/bin", SAM_AGENT_NAMESPACE: "x", HOME: undefined }),
    ).toEqual(readConfig(required));
  });
});

const amqpUrl = "amqps://worker:pa%3Ass@rabbit.example.com/tools";

describe("a broker", () => {
  const { SAM_NAMESPACE } = required;

  test("is RabbitMQ with AMQP_URL, with the defaults of the document", () => {
    expect(readConfig({ SAM_NAMESPACE, AMQP_URL: amqpUrl }).broker).toEqual({
      kind: "amqp",
      url: amqpUrl,
      tls: {
        caFile: undefined,
        certFile: undefined,
        keyFile: undefined,
        keyPassphrase: undefined,
      },
      exchange: undefined,
      maxDeliveries: 50,
      consumerTimeoutSeconds: 1_800,
      connectRetries: 0,
      connectRetryDelayMs: 3_000,
    });
  });

  test("is RabbitMQ as the variables describe it", () => {
    const config = readConfig({
      SAM_NAMESPACE,
      AMQP_URL: amqpUrl,
      AMQP_CA_FILE: "/tls/ca.pem",
      AMQP_CERT_FILE: "/tls/cert.pem",
      AMQP_KEY_FILE: "/tls/key.pem",
      AMQP_KEY_PASSPHRASE: "open sesame",
      AMQP_EXCHANGE: "shared/tools",
      AMQP_CONSUMER_TIMEOUT_SECONDS: "7200",
      BROKER_MAX_DELIVERIES: "3",
      CONNECT_RETRIES: "7",
      CONNECT_RETRY_DELAY_MS: "20",
    });
    expect(config.broker).toEqual({
      kind: "amqp",
      url: amqpUrl,
      tls: {
        caFile: "/tls/ca.pem",
        certFile: "/tls/cert.pem",
        keyFile: "/tls/key.pem",
        keyPassphrase: "open sesame",
      },
      exchange: "shared/tools",
      maxDeliveries: 3,
      consumerTimeoutSeconds: 7_200,
      connectRetries: 7,
      connectRetryDelayMs: 20,
    });
  });

  test("is Solace with SOLACE_HOST, with the defaults of the document", () => {
    expect(readConfig({ SAM_NAMESPACE, SOLACE_HOST: "broker.example.com:55555" }).broker).toEqual({
      kind: "solace",
      host: "broker.example.com:55555",
      vpn: "default",
      username: undefined,
      password: undefined,
      oauthToken: undefined,
      oauthTokenFile: undefined,
      tls: {
        trustStorePath: undefined,
        clientCertPath: undefined,
        clientKeyPath: undefined,
        clientKeyPassphrase: undefined,
      },
      statusDelivery: "persistent",
      maxDeliveries: 50,
      connectRetries: 0,
      connectRetryDelayMs: 3_000,
    });
  });

  test("is Solace as the variables describe it", () => {
    const config = readConfig({
      SAM_NAMESPACE,
      SOLACE_HOST: "tcps://one, wss://other",
      SOLACE_VPN: "tools",
      SOLACE_USERNAME: "str",
      SOLACE_PASSWORD: "secret",
      SOLACE_TRUST_STORE_PATH: "/tls/trusted",
      SOLACE_CLIENT_CERT_PATH: "/tls/cert.pem",
      SOLACE_CLIENT_KEY_PATH: "/tls/key.pem",
      SOLACE_CLIENT_KEY_PASSPHRASE: "open sesame",
      SOLACE_STATUS_DELIVERY: "direct",
      SOLACE_RECONNECT_RETRIES: "7",
      SOLACE_RECONNECT_DELAY_MS: "20",
      BROKER_MAX_DELIVERIES: "3",
      CONNECT_RETRIES: "99",
    });
    expect(config.broker).toEqual({
      kind: "solace",
      host: "tcps://one, wss://other",
      vpn: "tools",
      username: "str",
      password: "secret",
      oauthToken: undefined,
      oauthTokenFile: undefined,
      tls: {
        trustStorePath: "/tls/trusted",
        clientCertPath: "/tls/cert.pem",
        clientKeyPath: "/tls/key.pem",
        clientKeyPassphrase: "open sesame",
      },
      statusDelivery: "direct",
      maxDeliveries: 3,
      connectRetries: 7,
      connectRetryDelayMs: 20,
    });
    const token = { SAM_NAMESPACE, SOLACE_HOST: "tcps://broker", SOLACE_OAUTH_TOKEN: "token" };
    expect(readConfig(token).broker).toMatchObject({ oauthToken: "token" });
    const file = {
      SAM_NAMESPACE,
      SOLACE_HOST: "wss://broker",
      SOLACE_OAUTH_TOKEN_FILE: "/run/token",
    };
    expect(readConfig(file).broker).toMatchObject({ oauthTokenFile: "/run/token" });
  });

  test("is Solace as the .env of Solace Agent Mesh describes it", () => {
    const theirs = {
      SAM_NAMESPACE,
      SOLACE_BROKER_URL: "wss://broker:443",
      SOLACE_BROKER_VPN: "tools",
      SOLACE_BROKER_USERNAME: "str",
      SOLACE_BROKER_PASSWORD: "secret",
    };
    const ours = {
      SAM_NAMESPACE,
      SOLACE_HOST: "wss://broker:443",
      SOLACE_VPN: "tools",
      SOLACE_USERNAME: "str",
      SOLACE_PASSWORD: "secret",
    };
    expect(readConfig(theirs)).toEqual(readConfig(ours));
    expect(readConfig({ ...theirs, ...ours })).toEqual(readConfig(ours));
    expect(readConfig({ ...theirs, SOLACE_BROKER_VPN: "", SOLACE_VPN: "" }).broker).toMatchObject({
      vpn: "default",
    });
  });

  test("that two names describe differently, or one wrongly, is refused without a value", () => {
    const environment = { SAM_NAMESPACE, SOLACE_HOST: "tcps://broker" };
    const two = { ...environment, SOLACE_PASSWORD: "one", SOLACE_BROKER_PASSWORD: "other" };
    expect(problemsOf(two)).toEqual([
      "SOLACE_BROKER_PASSWORD, SOLACE_PASSWORD: are two names of one variable; set one of them",
    ]);
    expect(problemsOf({ SAM_NAMESPACE, SOLACE_BROKER_URL: "http://user:secret@broker" })).toEqual([
      expect.stringMatching(/^SOLACE_BROKER_URL: what is set is not accepted; accepted: /),
    ]);
    expect(problemsOf({ ...environment, ...required, SOLACE_BROKER_URL: "tcps://broker" })).toEqual(
      ["DEV_BROKER_HOST, SOLACE_HOST: are set together; set the one of the broker to connect to"],
    );
  });

  test("that is Solace is refused with half a login, two of them, or one that others can read", () => {
    const environment = { SAM_NAMESPACE, SOLACE_HOST: "tcps://broker" };
    const certificate = {
      SOLACE_CLIENT_CERT_PATH: "/cert",
      SOLACE_CLIENT_KEY_PATH: "/key",
    };
    const token = { SOLACE_OAUTH_TOKEN: "token" };
    expect(problemsOf({ ...environment, SOLACE_CLIENT_KEY_PATH: "/key" })).toEqual([
      "SOLACE_CLIENT_CERT_PATH, SOLACE_CLIENT_KEY_PATH: set both or none",
    ]);
    expect(problemsOf({ ...environment, ...certificate, ...token })).toEqual([
      "SOLACE_CLIENT_CERT_PATH, SOLACE_OAUTH_TOKEN: set one of them",
    ]);
    const tokenFile = { SOLACE_OAUTH_TOKEN_FILE: "/run/token" };
    expect(problemsOf({ ...environment, ...token, ...tokenFile })).toEqual([
      "SOLACE_OAUTH_TOKEN, SOLACE_OAUTH_TOKEN_FILE: set one of them",
    ]);
    const open = { ...environment, SOLACE_HOST: "tcps://one,other" };
    expect(problemsOf({ ...open, ...tokenFile })).toEqual([
      "SOLACE_OAUTH_TOKEN_FILE: needs TLS; let SOLACE_HOST begin with tcps:// or wss://",
    ]);
    expect(problemsOf({ ...open, ...token })).toEqual([
      "SOLACE_OAUTH_TOKEN: needs TLS; let SOLACE_HOST begin with tcps:// or wss://",
    ]);
    expect(problemsOf({ ...open, ...certificate })).toEqual([
      "SOLACE_CLIENT_CERT_PATH: needs TLS; let SOLACE_HOST begin with tcps:// or wss://",
    ]);
  });

  test("is named when none is set, and when several are", () => {
    const none = [
      "AMQP_URL, DEV_BROKER_HOST, SOLACE_HOST: none is set; set the one of the broker to connect to",
    ];
    expect(problemsOf({ SAM_NAMESPACE })).toEqual(none);
    expect(problemsOf({ SAM_NAMESPACE, DEV_BROKER_HOST: "", AMQP_URL: "" })).toEqual(none);
    expect(problemsOf({ ...required, AMQP_URL: amqpUrl })).toEqual([
      "AMQP_URL, DEV_BROKER_HOST: are set together; set the one of the broker to connect to",
    ]);
  });

  test("is refused with a certificate that has no key, and the other way about", () => {
    const expected = ["AMQP_CERT_FILE, AMQP_KEY_FILE: set both or none"];
    const environment = { SAM_NAMESPACE, AMQP_URL: amqpUrl };
    expect(problemsOf({ ...environment, AMQP_CERT_FILE: "/cert" })).toEqual(expected);
    expect(problemsOf({ ...environment, AMQP_KEY_FILE: "/key" })).toEqual(expected);
  });

  test.each(["http://broker", "tcp://str:secret@broker"])(
    "that is Solace is refused with the host %s, and not a word of it",
    { tags: "promise-B1" },
    (SOLACE_HOST) => {
      expect(problemsOf({ SAM_NAMESPACE, SOLACE_HOST })).toEqual([
        expect.stringMatching(/^SOLACE_HOST: what is set is not accepted; accepted: `host:port`/),
      ]);
    },
  );

  test("is refused without a word of its password", { tags: "promise-B1" }, () => {
    const problems = problemsOf({ SAM_NAMESPACE, AMQP_URL: "http://worker:secret@rabbit" });
    expect(problems).toEqual([
      expect.stringMatching(/^AMQP_URL: what is set is not accepted; accepted: `amqp:/),
    ]);
    expect(problems.join()).not.toContain("secret");
  });

  test("that is none for development allows no unsafe backend", () => {
    expect(problemsOf({ SAM_NAMESPACE, AMQP_URL: amqpUrl, SANDBOX_ALLOW_UNSAFE: "1" })).toEqual([
      "SANDBOX_ALLOW_UNSAFE: is for development, with a DevBroker",
    ]);
  });
});

describe("every variable", () => {
  test("arrives where it is used", () => {
    const config = readConfig({
      SAM_NAMESPACE: "prod/eu",
      SAM_WORKER_ID: "worker-7",
      WORKER_GROUP: "eu-west",
      WORKER_QUEUES: "default:6, heavy:2",
      DEV_BROKER_HOST: "10.0.0.1",
      DEV_BROKER_PORT: "55554",
      CONNECT_RETRIES: "5",
      CONNECT_RETRY_DELAY_MS: "250",
      MANIFEST_PATH: "/etc/tools.yaml",
      TOOLS_PYTHON_DIR: "/srv/python",
      TOOLS_NODE_DIR: "/srv/node",
      TOOLS_EXECUTABLE_DIR: "/srv/executable",
      TOOLS_DESCRIBED_BY: "manifest",
      TOOLS_DISCOVERY: "0",
      TOOLSETS_DIR: "/srv/toolsets",
      DEFAULT_TIMEOUT_SECONDS: "60",
      BROKER_MAX_RUNS: "7",
      SANDBOX_BWRAP_BIN: "/opt/bwrap",
      SANDBOX_RUNSC_BIN: "/opt/runsc",
      SANDBOX_CTR_BIN: "/opt/ctr",
      SANDBOX_CONTAINERD_ADDRESS: "/opt/containerd.sock",
      SANDBOX_KATA_RUNTIME: "io.containerd.kata-fc.v2",
      DOCKER_SOCKET: "/run/podman.sock",
      SANDBOX_PYTHON_BIN: "/opt/python3",
      SANDBOX_PYTHON_DOWNLOADS: "1",
      SANDBOX_PYTHONS: "3.12=/opt/python3.12/bin/python3,science=/opt/a=b/python,3.13=uv",
      SANDBOX_NODE_BIN: "/opt/node",
      SANDBOX_NODES: "25=/opt/node25/bin/node",
      SANDBOX_WORK_DIR: "/var/work",
      SANDBOX_DEFAULT_PROFILE: "my-own",
      SANDBOX_PROFILES_FILE: "/etc/profiles.yaml",
      SANDBOX_DEFAULT_NETWORK: "host",
      SANDBOX_HOST_NETWORK: "public",
      SANDBOX_ALLOWED_MOUNTS: "/srv/data:/srv/models/",
      SANDBOX_ALLOWED_DEVICES: "/dev/nvidia0",
      CREDENTIAL_SOURCES: "file:/etc/keys/,file:/,env:OTHER_TOKEN",
      SANDBOX_MINIMUM: "seccomp,cgroups",
      SANDBOX_MAX_CONCURRENT: "16",
      SANDBOX_MAX_QUEUED: "0",
      WARM_MAX_MEMORY_MB: "64",
      SANDBOX_UID: "1234",
      SANDBOX_MIN_FREE_DISK_MB: "0",
      PACKAGE_POLICY: "check",
      PACKAGE_ALLOW: "requests, @scope/name",
      PACKAGE_DIR: "/srv/environments",
      PACKAGE_KEEP_DAYS: "1",
      PACKAGE_MAX_MB: "10",
      PACKAGE_CACHE_MAX_MB: "5",
      PACKAGE_TIMEOUT_SECONDS: "20",
      PACKAGE_BUILD_MEMORY_MB: "256",
      PACKAGE_BUILD_DISK_MB: "512",
      TOOLS_WHEELS_DIR: "/srv/wheels",
      PACKAGE_NETRC_FILE: "/etc/netrc",
      PACKAGE_NPMRC_FILE: "/etc/npmrc",
      PACKAGE_UV_BIN: "/opt/uv",
      ARTIFACT_SERVICE_TYPE: "filesystem",
      ARTIFACT_BASE_PATH: "/srv/artifacts",
      ARTIFACT_SCOPE: "custom",
      ARTIFACT_SCOPE_VALUE: "shared",
      AUDIT_LOG: "/var/log/audit.log",
      AUDIT_REQUIRED: "1",
      ARTIFACT_MAX_BYTES: "1000",
      ARTIFACT_CALL_MAX_BYTES: "2000",
      ARTIFACT_MAX_OUTPUTS: "3",
      HEALTH_PORT: "0",
      HEALTH_HOST: "::1",
      DRAIN_TIMEOUT_SECONDS: "0",
      LOG_LEVEL: "debug",
      LOG_FORMAT: "pretty",
      TOOL_LOGS: "caller",
      TOOL_LOGS_MAX_KB: "64",
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
      group: "eu-west",
      queues: new Map([
        ["default", 6],
        ["heavy", 2],
      ]),
      manifestPath: "/etc/tools.yaml",
      toolsPythonDir: "/srv/python",
      toolsNodeDir: "/srv/node",
      toolsExecutableDir: "/srv/executable",
      describedBy: "manifest",
      isDiscoverable: false,
      toolsetsDir: "/srv/toolsets",
      defaultTimeoutSeconds: 60,
      maxRuns: 7,
      sandbox: {
        bwrapBin: "/opt/bwrap",
        runscBin: "/opt/runsc",
        ctrBin: "/opt/ctr",
        containerdAddress: "/opt/containerd.sock",
        kataRuntime: "io.containerd.kata-fc.v2",
        dockerSocket: "/run/podman.sock",
        pythonBin: "/opt/python3",
        nodeBin: "/opt/node",
        pythons: new Map([
          ["3.12", "/opt/python3.12/bin/python3"],
          ["science", "/opt/a=b/python"],
          ["3.13", "uv"],
        ]),
        downloadsPythons: true,
        nodes: new Map([["25", "/opt/node25/bin/node"]]),
        workDir: "/var/work",
        defaultProfile: "my-own",
        profilesFile: "/etc/profiles.yaml",
        defaultNetwork: "host",
        hostNetwork: publicNetwork,
        allowedMounts: ["/srv/data", "/srv/models/"],
        allowedDevices: ["/dev/nvidia0"],
        credentialSources: [
          { kind: "file", name: "/etc/keys" },
          { kind: "file", name: "/" },
          { kind: "env", name: "OTHER_TOKEN" },
        ],
        allowUnsafe: false,
        minimum: ["seccomp", "cgroups"],
        maxConcurrent: 8,
        maxQueued: 0,
        maxSuspended: 32,
        maxWarmBytes: 64 * 1024 * 1024,
        uid: 1234,
        minFreeDiskBytes: 0,
      },
      packages: {
        policy: "check",
        allowed: ["requests", "@scope/name"],
        directory: "/srv/environments",
        keepMs: 86_400_000,
        maxBytes: 10 * 1024 * 1024,
        cacheMaxBytes: 5 * 1024 * 1024,
        timeoutSeconds: 20,
        memoryBytes: 256 * 1024 * 1024,
        diskBytes: 512 * 1024 * 1024,
        wheelsDir: "/srv/wheels",
        netrcFile: "/etc/netrc",
        npmrcFile: "/etc/npmrc",
        uvBin: "/opt/uv",
      },
      artifacts: {
        store: { kind: "filesystem", basePath: "/srv/artifacts" },
        scope: { kind: "custom", value: "shared" },
        limits: { maxBytes: 1_000, callMaxBytes: 2_000, maxOutputs: 3 },
      },
      audit: { target: { kind: "file", path: "/var/log/audit.log" }, isRequired: true },
      healthPort: 0,
      healthHost: "::1",
      drainTimeoutSeconds: 0,
      toolLogs: { to: "caller", maxBytes: 64 * 1024 },
      logLevel: "debug",
      logFormat: "pretty",
    });
  });

  test("can send the audit log to standard output", () => {
    expect(readConfig({ ...required, AUDIT_LOG: "stdout" }).audit).toEqual({
      ...{ target: { kind: "stdout" }, isRequired: false },
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
const pythons =
  "`name=path` or `version=uv` with `,` between them, such as `3.12=/opt/python3.12/bin/python3`";
const sources = "`none`, or `file:/PATH` and `env:NAME` with `,` between them";
const paths = "absolute paths with `:` between them";
const profile = "one of restrictive, standard, permissive, or a profile of `SANDBOX_PROFILES_FILE`";
const exchange = "1 to 200 letters, digits, `.`, `_`, `:`, `/` or `-`, not beginning with `amq.`";
const namespace =
  "the agents' namespace, spelled exactly as they spell it: letters, digits, `.`, `_`, `-` and `/`";

const queuesAccepted =
  "`queue:slots` with `,` between them, queues of 1 to 50 letters, digits, `_` or `-`, slots 1 to 1000";

test("an audit log that is required and has no place is refused", () => {
  expect(problemsOf({ ...required, AUDIT_REQUIRED: "1" })).toEqual([
    "AUDIT_REQUIRED: needs AUDIT_LOG",
  ]);
});

describe("a variable that cannot be used", () => {
  test.each<readonly [string, string, string]>([
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
    ["AMQP_CA_FILE", "ca.pem", path],
    ["AMQP_EXCHANGE", "amq.topic", exchange],
    ["AMQP_EXCHANGE", "a b", exchange],
    ["AMQP_CONSUMER_TIMEOUT_SECONDS", "59", "seconds, 60 to 1000000"],
    ["BROKER_MAX_DELIVERIES", "1", "a whole number, 2 to 1000"],
    ["WORKER_GROUP", "a/b", "1 to 100 letters, digits, `.`, `_` or `-`"],
    ...["default", "default:0", "default:1001", "a b:1", "default:1,default:2", "default:1,"].map(
      (queues): [string, string, string] => ["WORKER_QUEUES", queues, queuesAccepted],
    ),
    ["SOLACE_TRUST_STORE_PATH", "ca.pem", path],
    ["SOLACE_STATUS_DELIVERY", "none", "one of persistent, direct"],
    ["SOLACE_RECONNECT_RETRIES", "-1", "a whole number, 0 to 10000"],
    ["LOG_FORMAT", "text", "one of auto, json, pretty"],
    ["TOOL_LOGS", "1", "one of off, log, caller"],
    ["TOOL_LOGS_MAX_KB", "65", "kilobytes, 1 to 64"],
    ["CONNECT_RETRIES", "-1", "a whole number, 0 to 10000"],
    ["CONNECT_RETRIES", "10001", "a whole number, 0 to 10000"],
    ["CONNECT_RETRY_DELAY_MS", "0", "milliseconds, 1 to 3600000"],
    ["CONNECT_RETRY_DELAY_MS", "1.5", "milliseconds, 1 to 3600000"],
    ["AUDIT_LOG", "audit.log", "an absolute path, or `stdout`"],
    ["AUDIT_REQUIRED", "yes", "0 or 1"],
    ["MANIFEST_PATH", "manifest.yaml", path],
    ["TOOLS_PYTHON_DIR", "./python", path],
    ["TOOLS_NODE_DIR", "node", path],
    ["DEFAULT_TIMEOUT_SECONDS", "0", "seconds, 1 to 86400"],
    ["DEFAULT_TIMEOUT_SECONDS", "86401", "seconds, 1 to 86400"],
    ["DEFAULT_TIMEOUT_SECONDS", "1e3", "seconds, 1 to 86400"],
    ["DEFAULT_TIMEOUT_SECONDS", " 30", "seconds, 1 to 86400"],
    ["SANDBOX_BWRAP_BIN", "bwrap", path],
    ["SANDBOX_RUNSC_BIN", "runsc", path],
    ["SANDBOX_CTR_BIN", "ctr", path],
    ["SANDBOX_CONTAINERD_ADDRESS", "containerd.sock", path],
    ["SANDBOX_KATA_RUNTIME", "no runtime", "a name of letters, digits, `.`, `_` and `-`"],
    ["DOCKER_SOCKET", "unix:///run/docker.sock", path],
    ["SANDBOX_PYTHON_BIN", "python3", path],
    ["SANDBOX_NODE_BIN", "node", path],
    ["SANDBOX_PYTHONS", "/usr/bin/python3", pythons],
    ["SANDBOX_PYTHONS", "3.12=python3", pythons],
    ["SANDBOX_PYTHONS", "3.12=/a,", pythons],
    ["SANDBOX_PYTHONS", "3.12=/a,3.12=/b", pythons],
    ["SANDBOX_PYTHONS", "-x=/a", pythons],
    [
      "SANDBOX_NODES",
      "25=uv",
      "`name=path` with `,` between them, such as `25=/opt/node25/bin/node`",
    ],
    ["SANDBOX_WORK_DIR", "work", path],
    ["SANDBOX_DEFAULT_PROFILE", "lax", profile],
    ["SANDBOX_DEFAULT_PROFILE", "no name", profile],
    ["SANDBOX_PROFILES_FILE", "profiles.yaml", path],
    ["SANDBOX_DEFAULT_NETWORK", "none", "one of public, host"],
    ["SANDBOX_HOST_NETWORK", "none", "one of public, host"],
    ["SANDBOX_ALLOWED_MOUNTS", "/a:b", paths],
    ["SANDBOX_ALLOWED_MOUNTS", "/a:", paths],
    ["SANDBOX_ALLOWED_DEVICES", "nvidia0", paths],
    ["CREDENTIAL_SOURCES", "/run/secrets", sources],
    ["CREDENTIAL_SOURCES", "file:secrets", sources],
    ["CREDENTIAL_SOURCES", "none,env:A", sources],
    ["CREDENTIAL_SOURCES", "env:A B", sources],
    ["SANDBOX_MAX_CONCURRENT", "0", "a whole number, 1 to 1000"],
    ["SANDBOX_MAX_CONCURRENT", "1001", "a whole number, 1 to 1000"],
    ["SANDBOX_MAX_QUEUED", "10001", "a whole number, 0 to 10000"],
    ["WARM_MAX_MEMORY_MB", "-1", "megabytes"],
    ["WARM_MAX_MEMORY_MB", "0.5", "megabytes"],
    ["SANDBOX_UID", "0", "a user id above 0"],
    ["SANDBOX_UID", "nobody", "a user id above 0"],
    ["SANDBOX_MIN_FREE_DISK_MB", "-5", "megabytes"],
    ["SANDBOX_MIN_FREE_DISK_MB", "99999999999999999999", "megabytes"],
    ["ARTIFACT_SERVICE_TYPE", "azure", "one of memory, filesystem, s3, gcs"],
    ["ARTIFACT_BASE_PATH", "artifacts", path],
    ["ARTIFACT_SCOPE", "global", "one of namespace, app, custom"],
    ["ARTIFACT_MAX_BYTES", "5G", "bytes, 1 or more"],
    ["ARTIFACT_CALL_MAX_BYTES", "0", "bytes, 1 or more"],
    ["ARTIFACT_MAX_OUTPUTS", "1001", "a whole number, 1 to 1000"],
    ["HEALTH_PORT", "65536", "a port, 1 to 65535, or 0 for none"],
    ["DRAIN_TIMEOUT_SECONDS", "86401", "seconds, 0 to 86400"],
    ["DRAIN_TIMEOUT_SECONDS", "30s", "seconds, 0 to 86400"],
    ["LOG_LEVEL", "loud", "one of trace, debug, info, warn, error, fatal, silent"],
  ])("%s: %j is named with what is accepted", (name, value, accepted) => {
    expect(problemsOf({ ...required, [name]: value })).toEqual([
      `${name}: ${JSON.stringify(value)} is not accepted; accepted: ${accepted}`,
    ]);
  });

  test("SAM_NAMESPACE is named when it is not set, and when it is empty", () => {
    const expected = [`SAM_NAMESPACE: is not set; accepted: ${namespace}`];
    expect(problemsOf({ ...required, SAM_NAMESPACE: undefined })).toEqual(expected);
    expect(problemsOf({ ...required, SAM_NAMESPACE: "" })).toEqual(expected);
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

  test("a cache of artifacts needs a store behind it, and its size a cache", () => {
    const set = { ...required, ARTIFACT_CACHE_MAX_MB: "64" };
    expect(problemsOf(set)).toEqual(["ARTIFACT_CACHE_MAX_MB: needs ARTIFACT_CACHE_DIR"]);
    expect(problemsOf({ ...set, ARTIFACT_CACHE_DIR: "/var/cache/str" })).toEqual([
      "ARTIFACT_CACHE_DIR: needs ARTIFACT_SERVICE_TYPE other than memory",
    ]);
    const files = { ...set, ARTIFACT_SERVICE_TYPE: "filesystem" };
    expect(readConfig({ ...files, ARTIFACT_CACHE_DIR: "/var/cache/str" }).artifacts.cache).toEqual({
      directory: "/var/cache/str",
      maxBytes: 64 * 1024 ** 2,
      minFreeBytes: 1000 * 1024 ** 2,
    });
    const bounded = { ...files, ARTIFACT_CACHE_DIR: "/c", ARTIFACT_CACHE_MIN_FREE_MB: "8" };
    expect(readConfig(bounded).artifacts.cache?.minFreeBytes).toBe(8 * 1024 ** 2);
    expect(problemsOf({ ...required, ARTIFACT_CACHE_MIN_FREE_MB: "8" })).toEqual([
      "ARTIFACT_CACHE_MIN_FREE_MB: needs ARTIFACT_CACHE_DIR",
    ]);
  });

  test("is named once, together with all the others", () => {
    const names = problemsOf({
      DEV_BROKER_PORT: "-1",
      SANDBOX_DEFAULT_PROFILE: "lax",
      ARTIFACT_SCOPE: "custom",
    }).map((problem) => problem.split(":")[0]);
    expect(names).toEqual([
      "SAM_NAMESPACE",
      "DEV_BROKER_PORT",
      "SANDBOX_DEFAULT_PROFILE",
      "ARTIFACT_SCOPE_VALUE",
      "AMQP_URL, DEV_BROKER_HOST, SOLACE_HOST",
    ]);
  });
});

describe("a secret in a file", () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "str-secrets-"));
    onTestFinished(() => rm(directory, { recursive: true }));
  });
  const fileOf = async (content: string | Uint8Array): Promise<string> => {
    const path = join(directory, "secret");
    await writeFile(path, content);
    return path;
  };
  const namespace = { SAM_NAMESPACE: "ed_test" };
  const solace = { ...namespace, SOLACE_HOST: "broker" };

  test.each([
    ["a password\n", "a password"],
    ["a password\r\n", "a password"],
    [" two lines\n\n", " two lines\n"],
    ["none", "none"],
  ])("is its content without the newline at the end: %j", async (content, password) => {
    const SOLACE_PASSWORD_FILE = await fileOf(content);
    expect(readConfig({ ...solace, SOLACE_PASSWORD_FILE }).broker).toMatchObject({ password });
  });

  test("may be any that a variable may hold, also one that says which broker", async () => {
    const file = await fileOf("amqp://user:password@broker/mesh\n");
    const { broker } = readConfig({ ...namespace, AMQP_URL_FILE: file });
    expect(broker).toMatchObject({ kind: "amqp", url: "amqp://user:password@broker/mesh" });
    expect(secretFileVariables).toEqual(
      expect.arrayContaining([
        ...["SOLACE_PASSWORD_FILE", "SOLACE_CLIENT_KEY_PASSPHRASE_FILE", "SOLACE_HOST_FILE"],
        ...["AMQP_URL_FILE", "AMQP_KEY_PASSPHRASE_FILE"],
      ]),
    );
    expect(secretFileVariables).not.toContain("SOLACE_OAUTH_TOKEN_FILE");
  });

  test("may have the other name of its variable", async () => {
    const SOLACE_BROKER_PASSWORD_FILE = await fileOf("one\n");
    expect(readConfig({ ...solace, SOLACE_BROKER_PASSWORD_FILE }).broker).toMatchObject({
      password: "one",
    });
    expect(
      problemsOf({ ...solace, SOLACE_BROKER_PASSWORD_FILE, SOLACE_PASSWORD: "other" }),
    ).toEqual([expect.stringContaining("are two names of one variable")]);
  });

  test("is an error beside the variable itself, and nothing when the name is empty", async () => {
    const SOLACE_PASSWORD_FILE = await fileOf("one");
    expect(problemsOf({ ...solace, SOLACE_PASSWORD: "other", SOLACE_PASSWORD_FILE })).toEqual([
      "SOLACE_PASSWORD, SOLACE_PASSWORD_FILE: set one of them",
    ]);
    const set = { ...solace, SOLACE_PASSWORD: "other", SOLACE_PASSWORD_FILE: "" };
    expect(readConfig(set).broker).toMatchObject({ password: "other" });
  });

  test("is told by the name of its file when it cannot be read, alone", async () => {
    const missing = join(directory, "missing");
    expect(problemsOf({ ...namespace, AMQP_URL_FILE: missing })).toEqual([
      `AMQP_URL_FILE: "${missing}" cannot be read: ENOENT`,
    ]);
    expect(problemsOf({ ...solace, SOLACE_PASSWORD_FILE: directory })).toEqual([
      `SOLACE_PASSWORD_FILE: "${directory}" cannot be read: EISDIR`,
    ]);
  });

  test.each([
    ["\n", "is empty"],
    ["x".repeat(65_537), "holds more than 65536 bytes"],
    [Uint8Array.of(0x73, 0xff), "is not UTF-8"],
  ])("is told without its content when it cannot be used", async (content, problem) => {
    const file = await fileOf(content);
    expect(problemsOf({ ...solace, SOLACE_PASSWORD_FILE: file })).toEqual([
      `SOLACE_PASSWORD_FILE: "${file}" ${problem}`,
    ]);
    const url = await fileOf("http://user:hidden@broker");
    expect(problemsOf({ ...namespace, AMQP_URL_FILE: url }).join()).not.toContain("hidden");
  });

  test("is read no further than its limit", () => {
    expect(problemsOf({ ...solace, SOLACE_PASSWORD_FILE: "/dev/zero" })).toEqual([
      'SOLACE_PASSWORD_FILE: "/dev/zero" holds more than 65536 bytes',
    ]);
  });
});

describe("a variable that begins like one of the worker's", () => {
  test.each([
    ["SANDBOX_MAX_CONCURENT", "SANDBOX_MAX_CONCURRENT"],
    ["SANDBOX_DEFUALT_PROFILE", "SANDBOX_DEFAULT_PROFILE"],
    ["SAM_NAME_SPACE", "SAM_NAMESPACE"],
    ["AMQP_URI", "AMQP_URL"],
    ["SOLACE_PASWORD_FILE", "SOLACE_PASSWORD_FILE"],
    ["MANIFEST_PATHS", "MANIFEST_PATH"],
  ])("is an error when it is a misspelt one: %s", (name, meant) => {
    expect(problemsOf({ ...required, [name]: "1" })).toEqual([
      `${name}: there is no such variable; ${meant} is meant`,
    ]);
    expect(problemsOf({ ...required, [name]: "" })).toEqual([]);
  });

  test.each(["SANDBOX_COLOUR", "SOLACE_DEV_MODE", "ARTIFACT_COLOUR"])(
    "is a warning when it is like none: %s",
    (name) => {
      expect(problemsOf({ ...required, [name]: "1" })).toEqual([]);
      expect(unknownVariables({ ...required, [name]: "1" })).toEqual([
        `${name}: there is no such variable of the worker; it is not used`,
      ]);
    },
  );

  test("is neither when it is known, the harness's, or what Kubernetes sets for a service of that name", () => {
    const services = {
      SOLACE_PORT: "tcp://10.0.0.1:55555",
      SOLACE_PORT_55555_TCP_ADDR: "10.0.0.1",
      SOLACE_PORT_55555_TCP: "tcp://10.0.0.1:55555",
      SOLACE_SERVICE_HOST: "10.0.0.1",
      AMQP_SERVICE_PORT_AMQPS: "5671",
    };
    const names = [...Object.keys(variables.shape), ...secretFileVariables];
    const set = { ...Object.fromEntries(names.map((name) => [name, "1"])), ...services };
    expect(misspeltVariables(set)).toEqual([]);
    expect(unknownVariables(set)).toEqual([]);
    expect(misspeltVariables({ SOLACE_PORT: "55555" })).toHaveLength(1);
  });

  test("is looked at whatever known one it is like", () => {
    // Those of SDKs, or of Docker's client, begin so, too.
    const ofOthers = ["AWS_REGION", "DOCKER_SOCKET", "GOOGLE_APPLICATION_CREDENTIALS"];
    const own = Object.keys(variables.shape).filter(
      (name) => !ofOthers.includes(name) && !name.startsWith("OTEL_"),
    );
    for (const name of own) {
      expect(misspeltVariables({ [`${name}X`]: "1" }), name).toHaveLength(1);
    }
    expect(misspeltVariables({ PATHS: "1", HOST: "x", LOGLEVEL: "debug" })).toEqual([]);
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
      "WORKER_QUEUES",
      "DEV_BROKER_HOST",
      "SOLACE_HOST",
      "SOLACE_USERNAME",
      "SOLACE_PASSWORD",
      "SOLACE_OAUTH_TOKEN",
      "SOLACE_OAUTH_TOKEN_FILE",
      "SOLACE_TRUST_STORE_PATH",
      "SOLACE_CLIENT_CERT_PATH",
      "SOLACE_CLIENT_KEY_PATH",
      "SOLACE_CLIENT_KEY_PASSPHRASE",
      "AMQP_URL",
      "AMQP_CA_FILE",
      "AMQP_CERT_FILE",
      "AMQP_KEY_FILE",
      "AMQP_KEY_PASSPHRASE",
      "AMQP_EXCHANGE",
      "TOOLSETS_DIR",
      "SANDBOX_PYTHONS",
      "SANDBOX_NODE_BIN",
      "SANDBOX_NODES",
      "SANDBOX_PROFILES_FILE",
      "SANDBOX_ALLOWED_MOUNTS",
      "SANDBOX_ALLOWED_DEVICES",
      "SANDBOX_MAX_SUSPENDED",
      "PACKAGE_ALLOW",
      "PACKAGE_NETRC_FILE",
      "PACKAGE_NPMRC_FILE",
      "PACKAGE_UV_BIN",
      "ARTIFACT_S3_BUCKET",
      "ARTIFACT_S3_REGION",
      "AWS_REGION",
      "ARTIFACT_S3_ENDPOINT",
      "ARTIFACT_S3_ENCRYPTION",
      "ARTIFACT_S3_KMS_KEY_ID",
      "ARTIFACT_S3_STORAGE_CLASS",
      "ARTIFACT_GCS_BUCKET",
      "ARTIFACT_GCS_ENDPOINT",
      "GOOGLE_APPLICATION_CREDENTIALS",
      "ARTIFACT_GCS_KMS_KEY",
      "ARTIFACT_GCS_STORAGE_CLASS",
      "ARTIFACT_CACHE_DIR",
      "ARTIFACT_CACHE_MAX_MB",
      "ARTIFACT_CACHE_MIN_FREE_MB",
      "ARTIFACT_SCOPE_VALUE",
      "AUDIT_LOG",
      "HEALTH_HOST",
      "CONSOLE_TOKEN",
      "RUNTIME_TOKEN",
      "RUNTIME_TLS_CERT",
      "RUNTIME_TLS_KEY",
      "OTEL_EXPORTER_OTLP_ENDPOINT",
      "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
      "OTEL_EXPORTER_OTLP_HEADERS",
      "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
      "OTEL_EXPORTER_OTLP_PROTOCOL",
      "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
      "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
      "OTEL_SERVICE_NAME",
      "OTEL_RESOURCE_ATTRIBUTES",
    ]);
    expect(defaults).toContainEqual(["SANDBOX_MIN_FREE_DISK_MB", "500"]);
  });
});

test("own paths are those of every variable, those of libraries among them", () => {
  const named = {
    SOLACE_PASSWORD_FILE: "/run/secrets/broker",
    SOLACE_BROKER_PASSWORD_FILE: "/run/secrets/alias",
    AMQP_KEY_FILE: "/etc/key",
    AWS_WEB_IDENTITY_TOKEN_FILE: "/var/run/secrets/token",
  };
  const others = { SAM_NAMESPACE: "ed_test/", AMQP_URL: "amqp://127.0.0.1" };
  expect(new Set(ownPaths({ ...named, ...others }))).toEqual(new Set(Object.values(named)));
});

describe("a console", () => {
  const port = { CONSOLE_PORT: "8082" };

  test("is none without a port", () => {
    expect(readConfig(required).console).toBe(undefined);
    expect(readConfig({ ...required, CONSOLE_TOKEN: "x".repeat(32) }).console).toBe(undefined);
  });

  test("is for this machine without a token", { tags: "promise-V1" }, () => {
    const own = { port: 8082, host: "127.0.0.1", token: undefined };
    expect(readConfig({ ...required, ...port }).console).toEqual(own);
    expect(readConfig({ ...required, ...port, CONSOLE_HOST: "[::1]" }).console).toEqual({
      ...own,
      host: "::1",
    });
    expect(problemsOf({ ...required, ...port, CONSOLE_HOST: "0.0.0.0" })).toEqual([
      'CONSOLE_HOST: "0.0.0.0" needs CONSOLE_TOKEN; without one accepted: 127.0.0.1',
    ]);
  });

  test("is for others with a token that is no short word", () => {
    const token = "0123456789abcdef".repeat(2);
    const all = { ...port, CONSOLE_HOST: "0.0.0.0", CONSOLE_TOKEN: token };
    expect(readConfig({ ...required, ...all }).console).toEqual({
      port: 8082,
      host: "0.0.0.0",
      token,
    });
    expect(problemsOf({ ...required, ...port, CONSOLE_TOKEN: "password" })).toEqual([
      "CONSOLE_TOKEN: what is set is not accepted; accepted: at least 32 characters",
    ]);
  });
});

describe("a served runtime", () => {
  const port = { RUNTIME_PORT: "8083" };
  const token = "0123456789abcdef".repeat(2);
  const tls = { RUNTIME_TLS_CERT: "/run/cert.pem", RUNTIME_TLS_KEY: "/run/key.pem" };

  test("is none without a port", () => {
    expect(readConfig({ ...required, RUNTIME_TOKEN: token, ...tls }).runtime).toBe(undefined);
  });

  test("is for this machine without token and TLS", { tags: "promise-L1" }, () => {
    const own = { port: 8083, host: "127.0.0.1", token: undefined, tls: undefined };
    expect(readConfig({ ...required, ...port }).runtime).toEqual(own);
    for (const given of [{}, { RUNTIME_TOKEN: token }, tls])
      expect(problemsOf({ ...required, ...port, ...given, RUNTIME_HOST: "0.0.0.0" })).toEqual([
        'RUNTIME_HOST: "0.0.0.0" needs RUNTIME_TOKEN and RUNTIME_TLS_CERT; without them accepted: 127.0.0.1',
      ]);
  });

  test("is for others with both", () => {
    const all = { ...port, ...tls, RUNTIME_HOST: "0.0.0.0", RUNTIME_TOKEN: token };
    expect(readConfig({ ...required, ...all }).runtime).toEqual({
      ...{ port: 8083, host: "0.0.0.0", token },
      tls: { certFile: "/run/cert.pem", keyFile: "/run/key.pem" },
    });
  });

  test("has a certificate with its key, and no short token", () => {
    const half = { RUNTIME_TLS_CERT: "/run/cert.pem" };
    expect(problemsOf({ ...required, ...port, ...half })).toEqual([
      "RUNTIME_TLS_CERT, RUNTIME_TLS_KEY: set both or none",
    ]);
    expect(problemsOf({ ...required, ...port, RUNTIME_TOKEN: "password" })).toEqual([
      "RUNTIME_TOKEN: what is set is not accepted; accepted: at least 32 characters",
    ]);
  });
});
