/**
 * The program of a sandbox's first process: the one file of the host on a mount of the host that a
 * tool gets to.
 *
 * bubblewrap was started outside, so `/proc/1/exe` inside leads past all mounts of the sandbox, and
 * a user who owns the file changes its mode there. Everything else is out of reach: `prlimit` and
 * interpreters run from read-only mounts, `taskset` has become bubblewrap, a script that starts
 * bubblewrap is no process's program, and `/proc/1/map_files`, where its libraries are, is for
 * privileged processes of the host only (proc_pid_map_files(5)).
 */
import { firstChangeableBy, type HostUser } from "../path-permissions.ts";
import { SandboxError } from "../sandbox.ts";

/**
 * Throws SandboxError for a program that the user of sandboxes can write to, can allow himself to
 * write to, or can put another in the place of.
 *
 * @param uid of sandboxes, or undefined for the worker's own
 */
export async function requireSafeProgram(program: string, uid: number | undefined): Promise<void> {
  const user = userOfSandboxes(uid);
  const setting = "bwrapBin";
  const changeable = await firstChangeableBy(program, user).catch((cause: unknown) => {
    throw new SandboxError(`cannot look at ${program}`, { cause, setting });
  });
  if (changeable === undefined) return;
  throw new SandboxError(
    `tools could change the program that makes their sandboxes: user ${user.uid}, as whom they run, owns ${changeable} or may write to it; name a bubblewrap that root owns, in directories that only root can change`,
    { setting },
  );
}

function userOfSandboxes(uid: number | undefined): HostUser {
  if (uid !== undefined) return { uid, groups: [uid] };
  const { getuid, getgid, getgroups } = process;
  return { uid: getuid?.() ?? 0, groups: [getgid?.() ?? 0, ...(getgroups?.() ?? [])] };
}
