/**
 * Opens the parts below the broker, of a worker or of a check, from a configuration.
 */
import { openCachedStore } from "../artifacts/open.ts";
import type { ArtifactStore } from "../artifacts/store.ts";
import { timeLimitProblem } from "../broker/open.ts";
import type { Config } from "../config/config.ts";
import type { LookUp } from "../egress/resolve.ts";
import type { InstallMode } from "../environments/installations.ts";
import type { ToolEnvironments } from "../environments/tool-environments.ts";
import type { ToolCatalog } from "../manifest/catalog.ts";
import type { Manifest, ToolEntry } from "../manifest/manifest.ts";
import type { Toolsets } from "../manifest/toolsets/toolsets.ts";
import { CodeWatch } from "../pool/code/code-watch.ts";
import { publicRefusal } from "../protocol/refusal.ts";
import type { PreparedPython } from "../runners/python/host.ts";
import type { ToolRunner } from "../runners/runner.ts";
import type { HostAccess } from "../sandbox/host-access.ts";
import type { HostCheck } from "../sandbox/host-check.ts";
import type { SandboxNetwork } from "../sandbox/network/sockets.ts";
import type { Profile, Profiles } from "../sandbox/profile.ts";
import { isolates } from "../sandbox/registry.ts";
import type { SandboxBackend } from "../sandbox/sandbox.ts";
import type { AuditLog } from "../telemetry/audit/audit.ts";
import { logEvent } from "../telemetry/log-event.ts";
import { openAudit } from "./telemetry/audit.ts";
import type { Host } from "./host.ts";
import { openLanguages, preparePythonAlongside } from "./languages.ts";
import { openManifest, openToolsets } from "./manifest.ts";
import {
  NetworkAdmission,
  checkEgress,
  createCredentialSources,
  openEgress,
  requireEgress,
} from "./network.ts";
import { createHostAccess, openBackend, readProfiles } from "./sandboxes.ts";

/** The parts below the broker. Disposing closes them in reverse order of opening. */
export interface Foundation extends AsyncDisposable {
  readonly backend: SandboxBackend;
  readonly store: ArtifactStore;
  /** Undefined without `AUDIT_LOG`. */
  readonly audit: AuditLog | undefined;
  readonly runners: ReadonlyMap<ToolEntry["runtime"], ToolRunner>;
  readonly environments: ToolEnvironments;
  /** Follows no code until it is asked to. */
  readonly codeWatch: CodeWatch;
  readonly catalog: ToolCatalog;
  /** Undefined without `TOOLSETS_DIR`. */
  readonly toolsets: Pick<Toolsets, "lease"> | undefined;
  readonly profiles: Profiles;
  readonly hostAccess: HostAccess;
  /** The network of sandboxes of a profile; undefined where it has none or the host's. */
  readonly networkOf: (profile: Profile) => Promise<SandboxNetwork | undefined>;
  /** Makes the check `egress`. Rejects with the signal's reason. */
  readonly checkEgress: (signal: AbortSignal) => Promise<HostCheck>;
}

/** Options of {@link openFoundation}. */
export interface FoundationOptions {
  /** Replace the profiles of the configuration. */
  readonly profiles?: Profiles | undefined;
  /** See `BackendOptions.basesBelow`. */
  readonly basesBelow?: string;
  /** Finds the addresses of names for sandboxes. Default: as the host does. */
  readonly lookUp?: LookUp;
  /** How packages that are not there are installed. Default: in the background. */
  readonly installs?: InstallMode;
}

/**
 * Opens and checks sandbox, store, runners and manifest, all or none. Throws ConfigError,
 * ProfilesError, SandboxError, StoreError, ManifestError, or the signal's reason.
 */
export async function openFoundation(
  config: Config,
  host: Host,
  signal: AbortSignal,
  { profiles: ownProfiles, basesBelow, installs = "background", lookUp }: FoundationOptions = {},
): Promise<Foundation> {
  await using parts = new AsyncDisposableStack();
  const audit = parts.use(await openAudit(config, host));
  const profiles = ownProfiles ?? (await readProfiles(config));
  // Concurrently: Python and the backend take longest at start.
  let preparedPython: Promise<PreparedPython> | undefined;
  const alongside = async (scratchDir: string): Promise<unknown> => {
    preparedPython = preparePythonAlongside(config, host, scratchDir);
    return preparedPython;
  };
  const asked = { profiles, alongside, basesBelow };
  const backend = parts.use(await openBackend(config, host, asked, signal));
  const { store: storeConfig, cache } = config.artifacts;
  const store = parts.use(await openCachedStore(storeConfig, cache, host));
  const limits = await store.check(signal);
  if (limits.length > 0) logEvent(host.log, "artifacts.limited", { limits });
  const { scratchDir } = backend;
  const toolsets = await openToolsets(config, host, { profiles, scratchDir }, signal);
  const given = { backend, preparedPython, installs, toolsets };
  const { runners, environments } = parts.use(await openLanguages(config, host, given));
  const codeWatch = parts.use(
    new CodeWatch({
      runners: runners.byRuntime,
      clock: host.clock,
      log: host.log.child({ part: "code" }),
    }),
  );
  const egress = await openEgress(config, host, scratchDir, lookUp);
  const isolated = [...profiles.values()].find(isolates);
  const tryEgress = (whileTrying: AbortSignal): Promise<HostCheck> =>
    isolated === undefined
      ? checkEgress(undefined, [], whileTrying)
      : checkEgress({ egress, backend }, backend.facts(isolated).checks, whileTrying);
  await requireEgress(config.sandbox.minimum, () => tryEgress(signal));
  const { preparations } = host;
  const networks = new NetworkAdmission({
    tryOnce: preparations && ((trial) => preparations.tryNetwork(config.sandbox, trial)),
    ...{ egress, backend, profiles },
    defaultProfile: config.sandbox.defaultProfile,
    hostNetwork: config.sandbox.hostNetwork,
    log: host.log.child({ part: "sandbox" }),
  });
  const hostAccess = createHostAccess(config);
  const credentialSources = createCredentialSources(config, host);
  const admission = {
    runsExecutables: runners.withDirectory.has("executable"),
    admit: async (tool: ToolEntry, whileAsking: AbortSignal) =>
      publicRefusal(
        timeLimitProblem(config.broker, tool.timeoutSeconds ?? config.defaultTimeoutSeconds),
      ) ??
      credentialSources.refuse(tool) ??
      (await hostAccess.refuse(tool)) ??
      (await networks.refuse(tool, whileAsking)) ??
      (await runners.refuse(tool, whileAsking)) ??
      environments.refuse(tool, whileAsking),
    admitChanged: () => environments.changed,
    onServed: (served: Manifest, newest: Manifest) =>
      environments.retain(served.tools.values(), newest.tools.values()),
  };
  const catalog = parts.use(
    await openManifest(config, host, { profiles, toolsets, ...admission }, signal),
  );
  const owned = parts.move();
  return {
    backend,
    store,
    audit,
    runners: runners.byRuntime,
    environments,
    codeWatch,
    catalog,
    toolsets,
    profiles,
    hostAccess,
    networkOf: (profile) => egress.networkOf(profile),
    checkEgress: tryEgress,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
