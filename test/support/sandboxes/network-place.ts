/**
 * A backend for sandboxes with networks of their own.
 */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type BubblewrapBackend,
  openBubblewrap,
} from "../../../worker/sandbox/bubblewrap/backend.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { newId } from "../../../worker/support/ids.ts";
import { isRoot } from "../is-root.ts";
import { reachableDirectory } from "../workers/rig.ts";

/** A backend, and the directory that it works in. */
export interface NetworkPlace extends AsyncDisposable {
  readonly backend: BubblewrapBackend;
  readonly base: string;
}

/** @param pythonBin what makes sockets inside sandboxes; the usual one unless given */
export async function openNetworkPlace(pythonBin?: string): Promise<NetworkPlace> {
  await using opened = new AsyncDisposableStack();
  const base = await reachableDirectory();
  opened.defer(() => rm(base, { recursive: true, force: true }));
  const fail = (error: unknown): void => {
    throw error;
  };
  const backend = opened.use(
    await openBubblewrap({
      ...{ bwrapBin: "bwrap", workBase: base, uid: isRoot ? 60_001 : undefined },
      ...{ clock: systemClock, newId, onRemoveFailed: fail, onGuardLost: fail },
      ...(pythonBin !== undefined && { pythonBin }),
    }),
  );
  const owned = opened.move();
  return { backend, base, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/**
 * A Python that makes no sockets inside sandboxes, and does everything else.
 *
 * @param directory one that everybody can pass
 */
export async function pythonWithoutSockets(directory: string): Promise<string> {
  const path = join(directory, "python");
  // The program that makes the sockets is the only one with this call.
  const script = '#!/bin/sh\ncase "$*" in *setns*) exit 1 ;; esac\nexec /usr/bin/python3 "$@"\n';
  await writeFile(path, script, { mode: 0o755 });
  return path;
}
