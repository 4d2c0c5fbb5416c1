/**
 * The sandbox backends of this program, from tight to wide. A new backend is one entry here.
 */
import type { BackendOptions, SandboxBackend } from "./sandbox.ts";
import type { BubblewrapSettings } from "./bubblewrap/settings.ts";
import type { ContainerdSettings, KataSettings } from "./containerd/settings.ts";
import type { GvisorSettings } from "./gvisor/settings.ts";
import type { DockerSettings } from "./docker/settings.ts";

/** Options of single backends, by the backend's name. */
export interface BackendSettings {
  readonly bubblewrap: BubblewrapSettings;
  readonly gvisor: GvisorSettings;
  readonly containerd: ContainerdSettings;
  readonly kata: KataSettings;
  readonly docker: DockerSettings;
}

/** The options of every backend together. */
export interface OpenerOptions extends BackendOptions {
  readonly settings: BackendSettings;
  /**
   * Work in the scratch directory that needs no sandbox: a backend may run it while it probes the
   * host.
   */
  readonly alongside?: ((scratchDir: string) => Promise<unknown>) | undefined;
}

interface BackendEntry {
  /** Whether its sandboxes keep anything apart. */
  readonly isolates: boolean;
  /** Whether its sandboxes can have a network: one besides `none`, of whatever kind. */
  readonly hasNetworks: boolean;
  /** Opens the backend, which is loaded only now; the caller owns it. Throws SandboxError. */
  open(options: OpenerOptions, signal: AbortSignal): Promise<SandboxBackend>;
}

const entries: ReadonlyMap<string, BackendEntry> = new Map<string, BackendEntry>([
  [
    "kata",
    {
      isolates: true,
      hasNetworks: false,
      open: async (options, signal) => {
        const { openKata } = await import("./containerd/backend.ts");
        return openKata({ ...options, ...options.settings.kata }, signal);
      },
    },
  ],
  [
    "gvisor",
    {
      isolates: true,
      hasNetworks: false,
      open: async (options, signal) => {
        const { openGvisor } = await import("./gvisor/backend.ts");
        return openGvisor({ ...options, ...options.settings.gvisor }, signal);
      },
    },
  ],
  [
    "bubblewrap",
    {
      isolates: true,
      hasNetworks: true,
      open: async (options, signal) => {
        const { openBubblewrap } = await import("./bubblewrap/backend.ts");
        return openBubblewrap({ ...options, ...options.settings.bubblewrap }, signal);
      },
    },
  ],
  [
    "containerd",
    {
      isolates: true,
      hasNetworks: false,
      open: async (options, signal) => {
        const { openContainerd } = await import("./containerd/backend.ts");
        return openContainerd({ ...options, ...options.settings.containerd }, signal);
      },
    },
  ],
  [
    "docker",
    {
      isolates: true,
      hasNetworks: false,
      open: async (options, signal) => {
        const { openDocker } = await import("./docker/backend.ts");
        return openDocker({ ...options, ...options.settings.docker }, signal);
      },
    },
  ],
  [
    "host",
    {
      isolates: false,
      hasNetworks: true,
      open: async (options) => (await import("./host/backend.ts")).openHost(options),
    },
  ],
]);

/** Names that a profile can give as its backend, from tight to wide. */
export const backendNames: readonly string[] = [...entries.keys()];

/** Whether sandboxes of a profile keep anything apart. Throws for a backend that does not exist. */
export function isolates(profile: { readonly backend: string }): boolean {
  return entryOf(profile.backend).isolates;
}

/** Whether sandboxes of a profile can have a network. Throws as `isolates`. */
export function hasNetworks(profile: { readonly backend: string }): boolean {
  return entryOf(profile.backend).hasNetworks;
}

/** Opens a backend; the caller owns it. Throws SandboxError; rejects with the signal's reason. */
export async function openBackend(
  name: string,
  options: OpenerOptions,
  signal: AbortSignal,
): Promise<SandboxBackend> {
  return entryOf(name).open(options, signal);
}

function entryOf(name: string): BackendEntry {
  const entry = entries.get(name);
  if (entry === undefined) throw new Error(`there is no sandbox backend ${name}`);
  return entry;
}
