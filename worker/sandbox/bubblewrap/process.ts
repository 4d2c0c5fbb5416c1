/**
 * Starts bubblewrap.
 */
import type { Clock } from "../../support/clock.ts";
import type { SandboxUsage } from "../accounting/sandbox-usage.ts";
import { putLast } from "../proc/processes.ts";
import { ownerTagOptions } from "../orphans.ts";
import { SandboxError, gatewayFd } from "../sandbox.ts";
import { firstInputFd, startSubprocess } from "../subprocess.ts";
import { BwrapExecution } from "./execution.ts";

/** What to start. */
export interface BwrapCommand {
  readonly bwrapBin: string;
  /** What tells this worker's sandboxes from others'; see `ownerTag`. */
  readonly ownerTag: string;
  /** Options for `--args`. */
  readonly options: readonly string[];
  readonly argv: readonly string[];
  /** Whether the command waits for {@link BwrapExecution.letGo}. */
  readonly isHeld?: boolean;
  /** The system-call filter, or undefined where there is none for this architecture. */
  readonly seccomp: Uint8Array | undefined;
  readonly uid: number | undefined;
  /** Whether the command's descriptor 0 is a socket, and not /dev/null. */
  readonly hasChannel?: boolean;
  /** Whether the command's descriptor 0 is a pipe. */
  readonly hasStdin?: boolean;
  /** Whether the command's descriptor {@link gatewayFd} is a socket. */
  readonly hasGateway?: boolean;
  /** What places bubblewrap, and so the sandbox, on some CPUs; see `placement`. */
  readonly placement: readonly string[];
  /** Opens the accounting, disposed with the sandbox; undefined for a trial without. */
  readonly openUsage: (() => Promise<SandboxUsage>) | undefined;
}

/** Options in the form that `--args FD` reads: each ended by a NUL. */
export function encodeArgs(options: readonly string[]): string {
  return options.map((option) => `${option}\0`).join("");
}

/** Where bubblewrap finds its inputs and its report, in the order of {@link startSubprocess}. */
function descriptorOptions(isFiltered: boolean, isHeld: boolean): readonly string[] {
  const names = [
    "--args",
    ...(isFiltered ? ["--seccomp"] : []),
    ...(isHeld ? ["--block-fd"] : []),
    "--json-status-fd",
  ];
  return names.flatMap((name, index) => [name, String(firstInputFd + index)]);
}

/** Starts bubblewrap. Throws SandboxError when the program itself cannot be started. */
export async function startBwrap(command: BwrapCommand, clock: Clock): Promise<BwrapExecution> {
  let usage: SandboxUsage | undefined;
  try {
    // Descriptors: options and filter in, report out. The environment is empty because the
    // sandbox's first process shows the one bubblewrap was started with, whatever --clearenv says
    // (bubblewrap issue 725).
    const options = encodeArgs(command.options);
    const { seccomp } = command;
    const [file = command.bwrapBin, ...argv] = [...command.placement, command.bwrapBin];
    const child = await startSubprocess({
      file,
      argv: [
        ...argv,
        ...ownerTagOptions(command.ownerTag),
        ...descriptorOptions(seccomp !== undefined, command.isHeld ?? false),
        "--",
        ...command.argv,
      ],
      env: {},
      uid: command.uid,
      hasChannel: command.hasChannel ?? false,
      hasStdin: command.hasStdin ?? false,
      inputs: seccomp === undefined ? [options] : [options, seccomp],
      hasHold: command.isHeld ?? false,
      // bubblewrap makes no process before it has its options. It can load meanwhile.
      beforeInputs: async (pid) => {
        putLast(pid);
        usage = await command.openUsage?.();
        await usage?.enter(pid);
      },
      hasReport: true,
      // bubblewrap hands it to the command, and closes it in processes of its own.
      socketFd: command.hasGateway === true ? gatewayFd : undefined,
    });
    if (child.report === undefined) throw new Error("the child has no report descriptor");
    return new BwrapExecution(child, child.report, clock, usage);
  } catch (error) {
    usage?.[Symbol.dispose]();
    throw new SandboxError(`cannot start ${command.bwrapBin}`, { cause: error });
  }
}
