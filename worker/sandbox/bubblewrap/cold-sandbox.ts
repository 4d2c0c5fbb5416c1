/**
 * One sandbox of bubblewrap's, made for one call: from its work directory to its end.
 */
import type { NetworkUsage } from "../../protocol/execution.ts";
import type { Limits } from "../../protocol/resource-limits.ts";
import type { Clock } from "../../support/clock.ts";
import { abortable, withTimeout } from "../../support/timeout.ts";
import { SandboxUsage, type SandboxUsageOptions } from "../accounting/sandbox-usage.ts";
import type { Cgroups } from "../cgroup/cgroup.ts";
import type { ResourceMonitor } from "../accounting/resource-monitor.ts";
import { type Door, openNetwork } from "../network/door.ts";
import type { ConnectionLog, OpenNetwork, SandboxNetwork } from "../network/sockets.ts";
import type { Profile } from "../profile.ts";
import { clampLimits, limitPrefix, placement } from "../rlimits.ts";
import {
  type Enforcement,
  type Launch,
  type ReadOnlyMount,
  type Sandbox,
  SandboxError,
  type SandboxRequest,
  type Unenforced,
  workDirInside,
} from "../sandbox.ts";
import type { WorkDir } from "../work/work-dir.ts";
import { bwrapOptions } from "./argv.ts";
import type { HostFacts } from "./probe/probe.ts";
import type { BwrapExecution } from "./execution.ts";
import { startBwrap } from "./process.ts";
import { templateFilter, toolFilter } from "./filters.ts";
import { WakeChannel } from "./idle/wake-channel.ts";

/** Milliseconds in which a command that failed before its start is seen to have ended. */
const selfEndMs = 500;

/** What all sandboxes of a worker have in common. */
export interface ColdSandboxParts {
  readonly bwrapBin: string;
  readonly uid: number | undefined;
  readonly clock: Clock;
  readonly host: HostFacts;
  /** What tells this worker's sandboxes from others'. */
  readonly ownerTag: string;
  readonly monitor: ResourceMonitor;
  readonly cgroups: Cgroups | undefined;
  readonly door: Door;
}

/** What is said of the sandbox. */
export interface ColdSandboxFacts {
  readonly enforcement: Enforcement;
  readonly unenforced: readonly Unenforced[];
}

/** A command that is told of its call later. */
export interface WaitingCommand {
  readonly execution: BwrapExecution;
  readonly channel: WakeChannel;
}

/** A sandbox that owns its work directory. */
export class ColdSandbox implements Sandbox {
  readonly backend = "bubblewrap";
  readonly enforcement: Enforcement;
  readonly unenforced: readonly Unenforced[];
  readonly workDir: WorkDir;
  readonly limits: Limits;
  readonly #parts: ColdSandboxParts;
  readonly #request: SandboxRequest;
  readonly #turn: number;
  #isStarted = false;
  #execution: BwrapExecution | undefined;
  #network: OpenNetwork | undefined;

  /** @param turn spreads sandboxes over the CPUs */
  constructor(
    parts: ColdSandboxParts,
    facts: ColdSandboxFacts,
    request: SandboxRequest,
    workDir: WorkDir,
    turn: number,
  ) {
    this.enforcement = facts.enforcement;
    this.unenforced = facts.unenforced;
    this.workDir = workDir;
    this.limits = clampLimits(request.profile.limits, parts.host.hardLimits);
    this.#parts = parts;
    this.#request = request;
    this.#turn = turn;
  }

  get networkUsage(): NetworkUsage | undefined {
    return this.#network?.usage;
  }

  get connections(): ConnectionLog | undefined {
    return this.#network?.connections;
  }

  /** Everything is mounted where it is called. */
  locate(insidePath: string): string {
    return insidePath;
  }

  async start(launch: Launch): Promise<BwrapExecution> {
    return this.#start(launch, "call");
  }

  /**
   * Starts a command that waits for its call, in place of `start`. The caller disposes the channel.
   * Throws SandboxError.
   */
  async startWaiting(launch: Launch): Promise<WaitingCommand> {
    return waiting(await this.#start(launch, "wait"));
  }

  /**
   * Starts a template, in place of `start`: it waits for orders, and may make namespaces and lift
   * its limits. The caller disposes the channel. Throws SandboxError.
   *
   * @param templateDir see {@link BwrapOptions.templateDir}
   */
  async startTemplate(launch: Launch, templateDir: string): Promise<WaitingCommand> {
    return waiting(await this.#start(launch, "wait", templateDir));
  }

  async #start(
    launch: Launch,
    kind: "call" | "wait",
    templateDir?: string,
  ): Promise<BwrapExecution> {
    if (this.#isStarted) throw new SandboxError("a sandbox is started once");
    this.#isStarted = true;
    const { bwrapBin, uid, clock, host, ownerTag } = this.#parts;
    const { profile, memoryBound, mounts, writable, devices, environment, network } = this.#request;
    const { limits } = this;
    const { proc, limitsNested, namesHost, systemDirectories, hardLimits, cpuIds } = host;
    const isTemplate = templateDir !== undefined;
    const prefix = limitPrefix(limits, memoryBound, hardLimits, isTemplate ? "soft" : "for-good");
    const { path: workDir, boundInputs } = this.workDir;
    this.#execution = await startBwrap(
      {
        bwrapBin,
        ownerTag,
        uid,
        seccomp: isTemplate ? templateFilter(profile, launch) : toolFilter(host, profile, launch),
        hasChannel: kind === "wait",
        hasStdin: kind === "call" && (launch.hasStdin ?? false),
        // That of a template's child is the child's own.
        hasGateway: !isTemplate && (this.#request.hasGateway ?? false),
        isHeld: network !== undefined,
        openUsage: () => this.#openUsage(),
        placement: placement(limits, cpuIds, this.#turn),
        argv: [...prefix, ...launch.argv],
        options: bwrapOptions({
          profile,
          proc,
          limitsNested,
          namesHost,
          systemDirectories,
          workDir,
          mounts: [...filesOf(network), ...mounts],
          writable,
          boundInputs,
          devices,
          environment,
          templateDir,
        }),
      },
      clock,
    );
    const namespaces = network && (await this.#execution.namespaces());
    if (network === undefined) return this.#execution;
    if (namespaces === undefined) {
      // One that ended says itself why; no other one goes on.
      void this.#execution.stop(0).catch(() => undefined);
      return this.#execution;
    }
    try {
      this.#network = await openNetwork(network, this.#parts.door, namespaces);
    } catch (error) {
      // One that failed on its way says itself why.
      if (await endsItself(this.#execution, clock)) return this.#execution;
      throw error;
    }
    this.#execution.letGo();
    return this.#execution;
  }

  async #openUsage(): Promise<SandboxUsage> {
    const { monitor, cgroups } = this.#parts;
    return SandboxUsage.open(monitor, cgroups, {
      limits: this.limits,
      ...usageOptions(this.#request, this.workDir.path),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#execution?.stop(0);
    } finally {
      await this.#network?.[Symbol.asyncDispose]();
      await this.workDir[Symbol.asyncDispose]();
    }
  }
}

/** Whether a held command that has no network has failed before its start. */
async function endsItself({ exited }: BwrapExecution, clock: Clock): Promise<boolean> {
  const exit = await withTimeout(selfEndMs, clock, AbortSignal.any([]), (over) =>
    abortable(exited, over).catch(() => undefined),
  );
  return exit !== undefined;
}

function filesOf(network: SandboxNetwork | undefined): readonly ReadOnlyMount[] {
  return Array.from(network?.files ?? [], ([target, source]) => ({ source, target }));
}

export function waiting(execution: BwrapExecution): WaitingCommand {
  if (execution.channel === undefined) throw new Error("the command has no channel");
  return { execution, channel: new WakeChannel(execution.channel) };
}

/** Mount points of tmpfs that a tool can write to. */
export function memoryDirectories({ hasVar }: Pick<Profile, "hasVar">): readonly string[] {
  return ["/tmp", "/dev/shm", ...(hasVar ? ["/var"] : [])];
}

/** How a sandbox is accounted for, but for its limits. */
export function usageOptions(
  { profile, devices }: Pick<SandboxRequest, "profile" | "devices">,
  workDir: string,
): Omit<SandboxUsageOptions, "limits"> {
  const directories = memoryDirectories(profile);
  return {
    workDir,
    tmpfs: { directories, workDirInside, workDir },
    hasDevices: devices.length > 0,
    commandIsChild: true,
  };
}
