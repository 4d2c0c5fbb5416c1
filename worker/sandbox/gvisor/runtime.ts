/**
 * gVisor's runsc as a runtime of containers, without a daemon.
 *
 * Commands run on a kernel of gVisor's own, which is a process of the host. The worker bounds that
 * process: by a control group where it may make some, else by samples.
 */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Limits } from "../../protocol/resource-limits.ts";
import type { Clock } from "../../support/clock.ts";
import type { Cgroups } from "../cgroup/cgroup.ts";
import type { Bundle } from "../oci/bundle.ts";
import type { OciContainer, OciRuntime } from "../oci/runtime.ts";
import type { Enforcement, Unenforced } from "../sandbox.ts";
import type { Subprocess } from "../subprocess.ts";
import { endNaming, killNaming } from "./processes.ts";

const run = promisify(execFile);

/** Milliseconds that runsc may take to hand a signal on. */
const signalTimeoutMs = 10_000;

/** Threads of the host that gVisor may have, beside those for the sandbox's own. */
const ownThreads = 512;
/** Threads of the host for each process or thread of the sandbox. */
const threadsPerProcess = 4;

const unenforced: readonly Unenforced[] = ["held-files"];

/** What the runtime is made with. */
export interface GvisorParts {
  readonly runscBin: string;
  readonly technology: string;
  readonly cgroups: Cgroups | undefined;
  readonly clock: Clock;
}

/** Containers of gVisor. Owns the control groups. */
export class GvisorRuntime implements OciRuntime {
  readonly backend = "gvisor";
  readonly technology: string;
  readonly enforcement: Enforcement;
  readonly unenforced = unenforced;
  readonly sharesKernel = false;
  readonly makesGroups = false;
  readonly memoryFile = "runsc-memory";
  readonly cgroups: Cgroups | undefined;
  readonly #runscBin: string;
  readonly #clock: Clock;

  constructor({ runscBin, technology, cgroups, clock }: GvisorParts) {
    this.technology = technology;
    this.cgroups = cgroups;
    this.#runscBin = runscBin;
    this.#clock = clock;
    this.enforcement = {
      memoryBytes: cgroups?.controls.memory === true ? "kernel" : "guard",
      cpuSeconds: "guard",
      cpus: "kernel",
      processes: "kernel",
      openFiles: "kernel",
      fileSizeBytes: "kernel",
      tmpBytes: "kernel",
      diskBytes: "guard",
      files: "guard",
      statusBytes: "guard",
    };
  }

  /** gVisor's kernel keeps the number of processes; the host's are its own threads. */
  sampled(limits: Limits): Limits {
    return { ...limits, processes: ownThreads + threadsPerProcess * limits.processes };
  }

  command(bundle: Bundle): readonly string[] {
    return [...this.#options(bundle), "run", `--bundle=${bundle.path}/`, bundle.id];
  }

  attach(bundle: Bundle, child: Subprocess): OciContainer {
    return {
      started: Promise.resolve(child.pid),
      terminate: () => {
        const [file = "", ...options] = this.#options(bundle);
        // One that has not started is killed at the end of its grace.
        void run(file, [...options, "kill", bundle.id, "TERM"], {
          timeout: signalTimeoutMs,
        }).catch(() => undefined);
      },
      kill: () => {
        child.kill("SIGKILL");
        killNaming(bundle.path);
      },
      ended: async () => {
        await endNaming(bundle.path, this.#clock);
        const log = await readFile(logOf(bundle), "utf8").catch(() => "");
        return !/"level":"(?:error|fatal)"/.test(log);
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cgroups?.[Symbol.asyncDispose]();
  }

  #options(bundle: Bundle): readonly string[] {
    return [
      this.#runscBin,
      `--root=${join(bundle.path, "state")}`,
      `--log=${logOf(bundle)}`,
      "--log-format=json",
      ...["--platform=ptrace", "--network=none", "--ignore-cgroups"],
      // Sockets and pipes of the work directory: the gateway, and the status pipe.
      ...["--host-uds=open", "--host-fifo=open"],
      ...(process.getuid?.() === 0 ? [] : ["--rootless"]),
    ];
  }
}

function logOf(bundle: Bundle): string {
  return join(bundle.path, "log");
}
