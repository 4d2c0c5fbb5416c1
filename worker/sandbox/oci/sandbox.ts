/**
 * One sandbox that is a container, made for one call.
 */
import { basename, join } from "node:path";
import type { Duplex } from "node:stream";
import type { Limits } from "../../protocol/resource-limits.ts";
import type { Clock } from "../../support/clock.ts";
import type { ResourceMonitor } from "../accounting/resource-monitor.ts";
import { SandboxUsage } from "../accounting/sandbox-usage.ts";
import type { SystemDirectory } from "../proc/host.ts";
import { putLast } from "../proc/processes.ts";
import { type HardLimits, clampLimits, cpusFor, placement, rlimitsFor } from "../rlimits.ts";
import {
  type Enforcement,
  type Launch,
  type Sandbox,
  SandboxError,
  type SandboxRequest,
  type Unenforced,
  workDirInside,
} from "../sandbox.ts";
import { type Subprocess, startSubprocess } from "../subprocess.ts";
import { gatewayPathInside, openGatewaySocket } from "../work/gateway-socket.ts";
import type { WorkDir } from "../work/work-dir.ts";
import { type Bundle, makeBundle, rootOf, systemPaths } from "./bundle.ts";
import { OciExecution } from "./execution.ts";
import type { OciRuntime } from "./runtime.ts";
import { ociSeccomp } from "./seccomp.ts";
import { type OciSpec, commandOf, ociSpec } from "./spec.ts";

/** Holds a runtime until it has joined its control group: a line comes on descriptor 3. */
const held = ["/bin/sh", "-c", 'read -r go <&3; exec "$@" 3<&-', "sh"];

/** What all sandboxes of a backend have in common. */
export interface OciSandboxParts {
  readonly runtime: OciRuntime;
  /** Directory of the bundles. */
  readonly bundles: string;
  /** uid and gid inside. */
  readonly userId: number;
  /** See `BackendOptions.uid`. */
  readonly uid: number | undefined;
  readonly clock: Clock;
  readonly monitor: ResourceMonitor;
  readonly hardLimits: HardLimits;
  readonly cpuIds: readonly number[];
  readonly systemDirectories: readonly SystemDirectory[];
}

/** A sandbox that owns its work directory. */
export class OciSandbox implements Sandbox {
  readonly backend: string;
  readonly enforcement: Enforcement;
  readonly unenforced: readonly Unenforced[];
  readonly workDir: WorkDir;
  readonly limits: Limits;
  readonly #parts: OciSandboxParts;
  readonly #request: SandboxRequest;
  /** As the work directory is called: unique on this host. */
  readonly #id: string;
  readonly #turn: number;
  #isStarted = false;
  #execution: OciExecution | undefined;
  #bundle: Bundle | undefined;
  #gateway: Duplex | undefined;

  /** @param turn spreads sandboxes over the CPUs */
  constructor(parts: OciSandboxParts, request: SandboxRequest, workDir: WorkDir, turn: number) {
    const { runtime, hardLimits } = parts;
    this.backend = runtime.backend;
    this.enforcement = runtime.enforcement;
    this.unenforced = runtime.unenforced;
    this.workDir = workDir;
    this.limits = clampLimits(request.profile.limits, hardLimits);
    this.#parts = parts;
    this.#request = request;
    this.#id = basename(workDir.path);
    this.#turn = turn;
  }

  /** A runtime hands no descriptor on. */
  get gatewayPath(): string | undefined {
    return this.#request.hasGateway === true ? gatewayPathInside : undefined;
  }

  /** Everything is mounted where it is called. */
  locate(insidePath: string): string {
    return insidePath;
  }

  async start(launch: Launch): Promise<OciExecution> {
    if (this.#isStarted) throw new SandboxError("a sandbox is started once");
    this.#isStarted = true;
    const { bundles, systemDirectories, clock, runtime } = this.#parts;
    const spec = await this.#spec(launch);
    const bundle = await makeBundle(bundles, this.#id, spec, systemDirectories);
    this.#bundle = bundle;
    const { hasGateway = false } = this.#request;
    const { path } = this.workDir;
    this.#gateway = hasGateway ? await openGatewaySocket(path, this.#parts.uid) : undefined;
    const usage = await this.#openUsage();
    const child = await this.#spawn(bundle, usage, launch.hasStdin ?? false);
    const container = runtime.attach(bundle, child);
    const { sharesKernel: countsProcesses } = runtime;
    const gateway = this.#gateway;
    const parts = { child, container, usage, countsProcesses, gateway, clock };
    this.#execution = new OciExecution(parts);
    return this.#execution;
  }

  async #spawn(bundle: Bundle, usage: SandboxUsage, hasStdin: boolean): Promise<Subprocess> {
    const { runtime, cpuIds } = this.#parts;
    const [file, ...argv] = [
      ...held,
      ...placement(this.limits, cpuIds, this.#turn),
      ...runtime.command(bundle),
    ];
    try {
      return await startSubprocess({
        file: file ?? "",
        argv,
        env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
        hasStdin,
        inputs: ["go\n"],
        beforeInputs: async (pid) => {
          putLast(pid);
          await usage.enter(pid);
        },
      });
    } catch (error) {
      usage[Symbol.dispose]();
      throw new SandboxError(`cannot start a container of ${runtime.backend}`, { cause: error });
    }
  }

  async #spec({ argv, hasStdin = false }: Launch): Promise<OciSpec> {
    const { runtime, bundles, userId, hardLimits, cpuIds, systemDirectories } = this.#parts;
    const { profile, memoryBound, mounts, writable = [], environment } = this.#request;
    const { limits } = this;
    const cpus = cpusFor(limits, cpuIds, this.#turn);
    const { sharesKernel, makesGroups } = runtime;
    const { memoryBytes, processes } = limits;
    // RLIMIT_NPROC counts all processes of a user of this kernel; the group counts the sandbox's.
    const bounded = sharesKernel ? { ...limits, processes: Infinity } : limits;
    // runc would have to load its filter below this limit, and needs more memory for it.
    const isBoundInside = makesGroups && memoryBound === "address-space";
    const bound = isBoundInside ? ["/usr/bin/prlimit", `--as=${memoryBytes}`, "--"] : [];
    return ociSpec({
      profile: { ...profile, limits },
      root: rootOf(join(bundles, this.#id)),
      argv: commandOf([...bound, ...argv], environment, { hasStdin, hasInit: makesGroups }),
      userId,
      rlimits: rlimitsFor(bounded, isBoundInside ? "resident" : memoryBound, hardLimits),
      workDir: this.workDir.path,
      systemPaths: await systemPaths(profile, systemDirectories),
      mounts,
      writable,
      // The init is one process more.
      resources: makesGroups ? { memoryBytes, processes: processes + 1, cpus } : undefined,
      seccomp: sharesKernel ? ociSeccomp(process.arch) : undefined,
    });
  }

  async #openUsage(): Promise<SandboxUsage> {
    const { monitor, runtime } = this.#parts;
    const { path: workDir } = this.workDir;
    const { hasVar } = this.#request.profile;
    const directories = ["/tmp", "/dev/shm", ...(hasVar ? ["/var"] : [])];
    return SandboxUsage.open(monitor, runtime.cgroups, {
      limits: runtime.sampled(this.limits),
      workDir,
      tmpfs: runtime.sharesKernel ? { directories, workDirInside, workDir } : undefined,
      memoryFile: runtime.memoryFile,
      hasDevices: !runtime.sharesKernel,
      commandIsChild: runtime.sharesKernel,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#execution?.stop(0);
    } finally {
      this.#gateway?.destroy();
      await this.#bundle?.[Symbol.asyncDispose]();
      await this.workDir[Symbol.asyncDispose]();
    }
  }
}
