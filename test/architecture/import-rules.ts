/**
 * The folders of the worker and who may import whom, as data: read by the architecture test and by
 * eslint.config.js.
 */

/**
 * A folder imports folders of a lower rank only; folders of one rank are peers and never import
 * each other.
 */
export const folderRanks: Readonly<Record<string, number>> = {
  support: 0,
  protocol: 1,
  telemetry: 1,
  broker: 2,
  manifest: 2,
  artifacts: 2,
  sandbox: 2,
  runners: 3,
  egress: 3,
  gateway: 3,
  environments: 3,
  group: 3,
  pool: 4,
  discovery: 4,
  invocation: 5,
  config: 6,
  console: 6,
  descriptions: 6,
  doctor: 6,
  runtime: 6,
  wiring: 7,
};

/** The files directly in worker/ are the process and its commands, and may import every folder. */
export const topRank = 8;

/**
 * Their folders are adapters, one technology each, loaded by the files named here only,
 * but for plain folders.
 */
export const adapterLoaders: Readonly<Record<string, readonly string[]>> = {
  broker: ["worker/broker/open.ts"],
  artifacts: ["worker/artifacts/open.ts"],
  sandbox: ["worker/sandbox/registry.ts", "worker/wiring/sandboxes.ts"],
};

/** Plain folders, which hold as many as would not be found in one list. */
export const plainFolders: readonly string[] = [
  "worker/artifacts/objects/",
  "worker/sandbox/cgroup/",
  "worker/sandbox/proc/",
  "worker/sandbox/accounting/",
  "worker/sandbox/work/",
  "worker/sandbox/network/",
  "worker/sandbox/syscalls/",
  "worker/sandbox/oci/",
];

/**
 * What the harness, which stands on the other side of the broker, may know of the worker: the words
 * on the wire, and the artifact store with its configuration, since both sides look into one store.
 */
export const harnessMayImport: readonly string[] = [
  "worker/support/",
  "worker/protocol/",
  "worker/config/broker-variables.ts",
  "worker/broker/broker.ts",
  "worker/broker/dev/wire.ts",
  "worker/broker/log.ts",
  "worker/broker/open.ts",
  "worker/broker/reconnecting.ts",
  "worker/artifacts/failures.ts",
  "worker/artifacts/mime.ts",
  "worker/artifacts/open.ts",
  "worker/artifacts/scope.ts",
  "worker/artifacts/store.ts",
  "worker/telemetry/events.ts",
  "worker/telemetry/pretty-log.ts",
  "worker/config/config.ts",
  "worker/config/secret-files.ts",
  "worker/config/variable-aliases.ts",
];

/**
 * What `harness tool`, `harness env` and `harness network` may know besides, which run tools,
 * install packages and read manifests as a worker does, without a broker, and write manifests: the
 * parts as they are wired together, and the contracts that they decorate.
 */
export const harnessToolMayImport: readonly string[] = [
  ...harnessMayImport,
  "worker/environments/environments.ts",
  "worker/environments/build/cache.ts",
  "worker/environments/store.ts",
  "worker/prepare.ts",
  "worker/discovery/described-tools.ts",
  "worker/egress/edge/credential-sources.ts",
  "worker/gateway/catalog.ts",
  "worker/gateway/remote.ts",
  "worker/gateway/stubs/",
  "worker/invocation/call-context.ts",
  "worker/manifest/manifest.ts",
  "worker/manifest/parse.ts",
  "worker/runners/inside-paths.ts",
  "worker/runtime/callable-tools.ts",
  "worker/sandbox/choose-profile.ts",
  "worker/sandbox/network/sockets.ts",
  "worker/sandbox/profile.ts",
  "worker/sandbox/profiles-file.ts",
  "worker/sandbox/registry.ts",
  "worker/sandbox/sandbox.ts",
  "worker/sandbox/work/work-dir.ts",
  "worker/telemetry/logger.ts",
  "worker/wiring/calls.ts",
  "worker/wiring/discovery.ts",
  "worker/wiring/foundation.ts",
  "worker/wiring/host.ts",
];

/**
 * Every dependency of package.json and who knows it; zod stands where bytes from outside become a
 * type.
 */
export const packageHomes: Readonly<Record<string, readonly string[]>> = {
  "@babel/parser": ["tool-runner/node/describe/"],
  "@aws-sdk/client-s3": ["worker/artifacts/s3/"],
  "@google-cloud/storage": ["worker/artifacts/gcs/"],
  "@opentelemetry/api": ["worker/telemetry/tracing/export-thread.ts"],
  "@opentelemetry/exporter-trace-otlp-proto": ["worker/telemetry/tracing/export-thread.ts"],
  "@opentelemetry/resources": ["worker/telemetry/tracing/export-thread.ts"],
  "@opentelemetry/sdk-trace": ["worker/telemetry/tracing/export-thread.ts"],
  "@peculiar/x509": ["worker/egress/edge/authority.ts"],
  "@renovatebot/pep440": ["worker/environments/", "worker/manifest/"],
  ajv: ["worker/invocation/", "worker/manifest/"],
  amqplib: ["worker/broker/amqp/"],
  "dns-packet": ["worker/egress/dns.ts"],
  chokidar: ["harness/dev/"],
  commander: ["harness/"],
  "reflect-metadata": ["worker/egress/edge/authority.ts"],
  semver: ["worker/environments/", "worker/manifest/"],
  solclientjs: ["worker/broker/solace/"],
  "google-auth-library": ["worker/artifacts/gcs/"],
  "lru-cache": [
    "worker/artifacts/cache/",
    "worker/broker/dev/",
    "worker/console/",
    "worker/egress/edge/",
    "worker/egress/resolve-cache.ts",
    "worker/invocation/",
    "worker/runners/",
  ],
  "mime-types": ["worker/artifacts/"],
  minisearch: ["worker/gateway/search.ts"],
  pino: ["worker/telemetry/"],
  // Bundled into the page: a dependency so that the list of parts of a release names it.
  preact: ["console/"],
  "prom-client": ["worker/telemetry/metrics/exposition.ts"],
  "quickjs-wasi": ["worker/runtime/wasm/"],
  "read-tls-client-hello": ["worker/egress/first-bytes.ts"],
  ws: ["harness/fakes/solace/servers.ts", "worker/runtime/service/"],
  yauzl: ["worker/manifest/toolsets/"],
  yaml: [
    "harness/discovery/",
    "harness/network/",
    "harness/tool/",
    "worker/support/json/yaml-document.ts",
  ],
  zod: [
    "harness/invoke/execution-facts.ts",
    "harness/tool/cases/case-file.ts",
    "worker/config/artifact-variables.ts",
    "worker/config/audit-config.ts",
    "worker/config/broker-variables.ts",
    "worker/config/config.ts",
    "worker/config/servers/",
    "worker/config/package-config.ts",
    "worker/config/tracing-config.ts",
    "worker/config/variable-kinds.ts",
    "worker/config/variables.ts",
    "worker/console/http/new-call.ts",
    "worker/environments/",
    "worker/gateway/proxy/messages.ts",
    "worker/invocation/steps/result.ts",
    "worker/manifest/",
    "worker/protocol/",
    "worker/runners/",
    "worker/runtime/service/messages.ts",
    "worker/sandbox/docker/engine/containers.ts",
    "worker/sandbox/profiles-file.ts",
  ],
};

/** Packages that a worker does without until it needs them: each makes its start longer. */
export const lazyPackages: readonly string[] = [
  ...["@aws-sdk/client-s3", "@google-cloud/storage", "google-auth-library"],
  ...["@peculiar/x509", "reflect-metadata"],
  ...["amqplib", "solclientjs"],
  ...["minisearch", "prom-client", "quickjs-wasi"],
];

/**
 * The edges of the two programs: nothing else reads the environment, takes signals or ends the
 * process.
 */
export const processEdges: readonly string[] = ["worker/main.ts", "harness/cli.ts"];

/** Members of `process` that belong to the edges. */
export const edgeMembers: readonly string[] = [
  "env",
  "exit",
  "exitCode",
  "on",
  "once",
  "addListener",
  "chdir",
  "umask",
];

/**
 * What is wrong with `importer` importing `target`, both paths from the project's root, or
 * undefined when it is fine.
 */
export function importViolation(importer: string, target: string): string | undefined {
  if (topFolder(importer) === "worker") return workerViolation(importer, target);
  if (topFolder(target) === topFolder(importer)) return undefined;
  if (topFolder(importer) === "harness") {
    const runsTools = /^harness\/(?:tool|packages|network)\//.test(importer);
    const allowed = runsTools ? harnessToolMayImport : harnessMayImport;
    const isAllowed = topFolder(target) === "worker" && isWithin(target, allowed);
    return isAllowed ? undefined : `the harness may import ${allowed.join(", ")} only`;
  }
  return `${topFolder(importer)} stands alone and imports no other folder`;
}

/** What is wrong with `importer` importing the npm package `name`, or undefined when it is fine. */
export function packageViolation(importer: string, name: string): string | undefined {
  const homes = packageHomes[name];
  if (homes === undefined)
    return "no folder is its home; give it one in test/architecture/import-rules.ts";
  return isWithin(importer, homes) ? undefined : `it is known in ${homes.join(", ")} only`;
}

/** What the page of the console knows: its own files, and the types of what it sends and gets. */
export function pageViolation(
  specifier: string,
  target: string | undefined,
  isTypeOnly: boolean,
): string | undefined {
  if (target === undefined) {
    return /^preact(\/|$)/.test(specifier) ? undefined : "the page imports preact only";
  }
  if (topFolder(target) === "console") return undefined;
  return target === "worker/console/api.ts" && isTypeOnly
    ? undefined
    : "the page imports types of worker/console/api.ts only";
}

/** The folders that `folder` must not import. */
export function forbiddenFolders(folder: string): readonly string[] {
  const rank = folderRanks[folder] ?? topRank;
  return Object.keys(folderRanks).filter(
    (other) => other !== folder && (folderRanks[other] ?? 0) >= rank,
  );
}

/** The folder of a file of the worker; undefined for the files directly in worker/. */
export function folderOf(file: string): string | undefined {
  const [, folder, ...rest] = file.split("/");
  return rest.length === 0 ? undefined : folder;
}

function workerViolation(importer: string, target: string): string | undefined {
  if (topFolder(target) !== "worker") return "the worker imports nothing from outside worker/";
  const from = folderOf(importer);
  const to = folderOf(target);
  if (from !== undefined) {
    if (to === undefined) return `folder ${from} imports a file of the process or of a command`;
    if (forbiddenFolders(from).includes(to)) {
      return folderRanks[from] === folderRanks[to]
        ? `${from} and ${to} are peers; they meet in a folder above them`
        : `${from} is below ${to}`;
    }
  }
  return adapterViolation(importer, target);
}

/**
 * Refuses a step into an adapter's folder by anyone but its neighbours in there and the folder's
 * loader.
 */
function adapterViolation(importer: string, target: string): string | undefined {
  const [, folder = "", adapter, file] = target.split("/");
  const loaders = adapterLoaders[folder];
  if (loaders === undefined || file === undefined || loaders.includes(importer)) return undefined;
  if (isWithin(target, plainFolders)) return undefined;
  if (importer.startsWith(`worker/${folder}/${adapter}/`)) return undefined;
  return `adapters of ${folder} are loaded by ${loaders.join(" and ")} only`;
}

function topFolder(file: string): string {
  return file.slice(0, file.indexOf("/"));
}

function isWithin(file: string, places: readonly string[]): boolean {
  return places.some((place) => (place.endsWith("/") ? file.startsWith(place) : file === place));
}
