/**
 * Starts each call in a new sandbox, and prepares tools for idle ones as well.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import type { PreparedTool, ToolRunner } from "../runners/runner.ts";
import type { HostAccess } from "../sandbox/host-access.ts";
import type { SandboxNetwork } from "../sandbox/network/sockets.ts";
import type { Profile } from "../sandbox/profile.ts";
import type { SandboxBackend, SandboxRequest } from "../sandbox/sandbox.ts";
import type { Disposal } from "./disposal.ts";
import type { Starts, ToolSandbox } from "./starts.ts";

/** What sandboxes of tools are made with. */
export interface StartParts {
  readonly runners: ReadonlyMap<ToolEntry["runtime"], ToolRunner>;
  readonly backend: Pick<SandboxBackend, "acquire" | "aheadOf">;
  readonly hostAccess: Pick<HostAccess, "grant">;
  /** The network of sandboxes of this profile; undefined where it has none or the host's. */
  readonly networkOf: (profile: Profile) => Promise<SandboxNetwork | undefined> | undefined;
}

/** A tool with its present source, and the request for its sandboxes. Disposed after these. */
export interface PreparedRequest extends AsyncDisposable {
  readonly tool: PreparedTool;
  readonly request: SandboxRequest;
}

/**
 * Prepares a tool with its present source. The caller owns it. Throws SandboxError,
 * NotGrantedError.
 */
export async function prepareRequest(
  { runners, hostAccess, networkOf }: StartParts,
  entry: ToolEntry,
  profile: Profile,
): Promise<PreparedRequest> {
  const runner = runners.get(entry.runtime);
  if (runner === undefined) throw new Error(`no runner for runtime "${entry.runtime}"`);
  await using held = new AsyncDisposableStack();
  const tool = held.use(await runner.prepare(entry, profile));
  const granted = await hostAccess.grant(entry);
  const { mounts, environment, memoryBound } = tool;
  const network = await networkOf(profile);
  const request = {
    profile,
    memoryBound,
    mounts: [...mounts, ...granted.mounts],
    devices: granted.devices,
    environment: new Map([...environment, ...(network?.environment ?? [])]),
    network,
    hasGateway: entry.gateway !== undefined,
  };
  const owned = held.move();
  return { tool, request, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** A new sandbox for a call. See {@link Starts.acquire}. */
export async function acquireCold(
  parts: StartParts,
  entry: ToolEntry,
  profile: Profile,
  signal: AbortSignal,
): Promise<ToolSandbox> {
  await using held = new AsyncDisposableStack();
  const { tool, request } = held.use(await prepareRequest(parts, entry, profile));
  const sandbox = held.use(await parts.backend.acquire(request, signal));
  const owned = held.move();
  return {
    startMode: "cold",
    sandbox,
    tool,
    start: async (args, whileStarting) => {
      await sandbox.workDir.writeArguments(args);
      return await sandbox.start(tool.launch, whileStarting);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Makes a sandbox for each call. */
export class ColdStarts implements Starts {
  readonly stats = [];
  readonly #parts: StartParts;
  readonly #disposal: Disposal;

  constructor(parts: StartParts, disposal: Disposal) {
    this.#parts = parts;
    this.#disposal = disposal;
  }

  acquire(entry: ToolEntry, profile: Profile, signal: AbortSignal): Promise<ToolSandbox> {
    return acquireCold(this.#parts, entry, profile, signal);
  }

  follow(): void {
    // There are no idle sandboxes.
  }

  disposeLater(resources: AsyncDisposable): void {
    this.#disposal.beginAfterSeries(resources);
  }

  drain(): void {
    // There are no idle sandboxes.
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#disposal.settled();
  }
}
