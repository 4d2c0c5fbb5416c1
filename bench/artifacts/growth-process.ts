/**
 * Moves one artifact, and prints by how many bytes this process grew. Arguments: the work, a
 * directory, the artifact's bytes, and the store's configuration as JSON.
 */
import { open } from "node:fs/promises";
import { join } from "node:path";
import { type StoreConfig, openStore } from "../../worker/artifacts/open.ts";
import { collect, stage } from "./moves.ts";

/** Milliseconds between two looks at the memory. */
const sampleMs = 20;

const filename = "large.bin";

const [work, base = "", size = "", config = ""] = process.argv.slice(2);
const bytes = Number(size);
await using store = await openStore(JSON.parse(config) as StoreConfig);
await store.check(AbortSignal.timeout(10_000));
await using file = await open(join(base, filename), "w+");
await file.truncate(bytes);
const before = process.memoryUsage.rss();
let peak = before;
const sampling = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), sampleMs);
await (work === "stage" ? stage(store, filename) : collect(store, filename, { file, bytes }));
clearInterval(sampling);
process.stdout.write(String(peak - before));
