/**
 * What this host is to sandboxes: its directories of programs, and its processors.
 */
import { lstat, readFile, readlink } from "node:fs/promises";
import { parseCpuList } from "../rlimits.ts";

const candidates = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/**
 * One of the host's top-level program directories: a link into /usr on a merged-/usr system, else a
 * directory.
 */
export interface SystemDirectory {
  readonly path: string;
  /** Target of the link, or undefined for a directory. */
  readonly linkTarget: string | undefined;
}

/** Files of /etc that programs in /usr need whatever they do. */
export const baseEtc = ["/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"];

/** The directories of programs beside /usr that there are. */
export async function systemDirectories(): Promise<readonly SystemDirectory[]> {
  const found = await Promise.all(
    candidates.map(async (path) => {
      const stats = await lstat(path).catch(() => undefined);
      if (stats === undefined) return [];
      return [{ path, linkTarget: stats.isSymbolicLink() ? await readlink(path) : undefined }];
    }),
  );
  return found.flat();
}

/** Numbers of the processors that this process may use. */
export async function allowedCpus(): Promise<readonly number[]> {
  const status = await readFile("/proc/self/status", "utf8");
  return parseCpuList(/^Cpus_allowed_list:\s*(.*)$/m.exec(status)?.[1] ?? "0");
}
