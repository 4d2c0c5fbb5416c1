/**
 * The watches that this process has of the kernel.
 */
import { readFile, readdir } from "node:fs/promises";

/** How many there are now. */
export async function inotifyWatches(): Promise<number> {
  const infos = await readdir("/proc/self/fdinfo");
  const texts = await Promise.all(
    infos.map((name) => readFile(`/proc/self/fdinfo/${name}`, "utf8").catch(() => "")),
  );
  return texts.join("\n").match(/^inotify wd:/gm)?.length ?? 0;
}
