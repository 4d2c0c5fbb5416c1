/**
 * A program that reads an artifact through a cache, and is killed by SIGKILL in the midst of it: of
 * the transfer, or of an eviction, when the first entry is gone and the others are not.
 *
 * usage: cache-victim.ts BASE CACHE MAX_BYTES FILENAME fill|eviction
 */
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { setImmediate } from "node:timers/promises";
import { createFilesystemStore } from "../../../../worker/artifacts/filesystem/store.ts";
import type { ArtifactStore } from "../../../../worker/artifacts/store.ts";
import { systemClock } from "../../../../worker/support/clock.ts";
import { altered, readBytes } from "./altered-store.ts";

const [basePath = "", directory = "", maxBytes = "", filename = "", step] = process.argv.slice(2);

function die(): void {
  process.kill(process.pid, "SIGKILL");
}

/** Bytes of the largest file below a directory. */
async function largestBytes(below: string): Promise<number> {
  const names = await fs.readdir(below, { recursive: true });
  const files = await Promise.all(names.map((name) => fs.stat(join(below, name))));
  return Math.max(...files.filter((file) => file.isFile()).map(({ size }) => size), 0);
}

const store = createFilesystemStore({ basePath });
const open: ArtifactStore["open"] = async (...args) => {
  const opened = await store.open(...args);
  const halves = async function* () {
    const content = await buffer(opened.body);
    const half = content.length / 2;
    yield content.subarray(0, half);
    if (step === "fill") {
      while ((await largestBytes(join(directory, "processes"))) < half) await setImmediate();
      die();
    }
    yield content.subarray(half);
  };
  return { ...opened, body: Readable.from(halves(), { objectMode: false, highWaterMark: 1 }) };
};
if (step === "eviction") {
  const { unlink } = fs;
  fs.unlink = async (path) => {
    await unlink(path);
    if (String(path).includes("/entries/")) die();
  };
  // Imports of names follow.
  syncBuiltinESMExports();
}
const { createCachedStore } = await import("../../../../worker/artifacts/cache/store.ts");
await using cached = createCachedStore({
  store: altered(store, { open }),
  identity: ["shared"],
  config: { directory, maxBytes: Number(maxBytes), minFreeBytes: 0 },
  clock: systemClock,
  log: { warn: (facts) => void process.stderr.write(`${JSON.stringify(facts)}\n`) },
});
await readBytes(cached, filename);
