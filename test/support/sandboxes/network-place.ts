/**
 * A backend for sandboxes with networks of their own.
 */
import { rm } from "node:fs/promises";
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
