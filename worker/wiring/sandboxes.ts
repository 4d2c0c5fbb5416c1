/**
 * Opens the sandboxes of a worker, of a check or of the doctor: profiles, backends, mounts of the
 * host.
 */
import { type Config, ConfigError } from "../config/config.ts";
import { type BackendsOptions, openBackends, requireAllowed } from "../sandbox/backends.ts";
import { type FurtherCheck, examineHost } from "../sandbox/bubblewrap/backend.ts";
import { HostAccess } from "../sandbox/host-access.ts";
import type { HostExamination } from "../sandbox/host-check.ts";
import { type Profiles, builtInProfilesWith } from "../sandbox/profile.ts";
import { loadProfiles } from "../sandbox/profiles-file.ts";
import type { SandboxBackend } from "../sandbox/sandbox.ts";
import { newId } from "../support/ids.ts";
import { logEvent } from "../telemetry/log-event.ts";
import { type Host, isRoot } from "./host.ts";
import { checkEgress, openEgress } from "./network.ts";

/**
 * Loads all profiles, as they are written. Throws ProfilesError; ConfigError for an unknown default
 * profile; SandboxError for a profile without isolation where that is not allowed.
 */
export async function readProfiles(config: Config): Promise<Profiles> {
  const { profilesFile, allowUnsafe, defaultNetwork } = config.sandbox;
  const profiles = await loadProfiles(profilesFile, builtInProfilesWith(defaultNetwork));
  requireDefaultProfile(config, profiles);
  requireAllowed(profiles, allowUnsafe);
  return profiles;
}

function requireDefaultProfile({ sandbox }: Config, profiles: Profiles): void {
  const { defaultProfile } = sandbox;
  if (profiles.has(defaultProfile)) return;
  const names = [...profiles.keys()].join(", ");
  throw new ConfigError([
    `SANDBOX_DEFAULT_PROFILE: "${defaultProfile}" is not a profile; accepted: one of ${names}`,
  ]);
}

/** What of the host the operator lets tools see. */
export function createHostAccess({ sandbox }: Config): HostAccess {
  const { allowedMounts, allowedDevices } = sandbox;
  return new HostAccess({ allowedMounts, allowedDevices, isForeign: isRoot() });
}

/** The user that sandboxes run as; undefined for a worker that cannot change its own. */
export function sandboxUid({ sandbox }: Config): number | undefined {
  return isRoot() ? sandbox.uid : undefined;
}

/**
 * Probes the sandbox features of this host. Leaves nothing behind. Throws SandboxError when the
 * probe fails, or the signal's reason.
 */
export async function examineSandboxes(
  config: Config,
  host: Host,
  signal: AbortSignal,
): Promise<HostExamination> {
  const { settings, ...options } = backendOptions(config, host);
  const further: FurtherCheck = async (backend, earlier) => {
    const parts = backend && {
      backend,
      egress: await openEgress(config, host, backend.scratchDir),
    };
    return checkEgress(parts, earlier, signal);
  };
  const bubblewrap = { ...options, ...settings.bubblewrap };
  const { version, checks } = await examineHost(bubblewrap, further, signal);
  return { technology: version, checks };
}

/** Opens the sandbox backends of the profiles; the caller owns them. Throws SandboxError. */
export function openBackend(
  config: Config,
  host: Host,
  given: Pick<BackendsOptions, "profiles" | "alongside" | "basesBelow">,
  signal: AbortSignal,
): Promise<SandboxBackend> {
  const { allowUnsafe } = config.sandbox;
  const options = { ...backendOptions(config, host), ...given, allowUnsafe };
  return openBackends(options, signal);
}

function backendOptions(config: Config, host: Host) {
  const log = host.log.child({ part: "sandbox" });
  const { bwrapBin, pythonBin, workDir, minimum, runscBin, dockerSocket } = config.sandbox;
  const { ctrBin, containerdAddress: address, kataRuntime } = config.sandbox;
  const { identify, tryGroups, tryHost } = host.preparations ?? {};
  return {
    settings: {
      bubblewrap: { bwrapBin, pythonBin, minimum, identify, tryGroups, tryHost },
      gvisor: { runscBin },
      containerd: { ctrBin, address },
      kata: { ctrBin, address, runtime: kataRuntime },
      docker: { dockerSocket },
    },
    workBase: workDir,
    uid: sandboxUid(config),
    clock: host.clock,
    newId,
    onRemoveFailed: (error: unknown) =>
      logEvent(log, "work_directory.remove_failed", { err: error }),
    onGuardLost: (error: unknown) => logEvent(log, "sandbox.guard_lost", { err: error }),
  };
}
