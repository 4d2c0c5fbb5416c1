/**
 * Has a client in a sandbox transfer bytes through the fabric of this process, which does nothing
 * else, and prints as JSON what that took ({@link Load}). Arguments: a directory, the way, bytes a
 * second, seconds.
 */
import { LoopDelays } from "../loop-delays.ts";
import { openClients } from "./clients.ts";
import type { Load } from "./load.ts";

/** Milliseconds between two looks at the memory. */
const sampleMs = 20;

const [base = "", way, rate = "", seconds = ""] = process.argv.slice(2);
const work = way === "upload" ? way : "download";
const bytesPerSecond = Number(rate);
await using clients = await openClients(base);
const amount = bytesPerSecond * Number(seconds);
const before = process.memoryUsage.rss();
let peak = before;
const sampling = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), sampleMs);
const delays = new LoopDelays();
const ms = await clients.through.run({ work, amount, bytesPerSecond });
const load: Load = {
  work,
  bytesPerSecond: (amount * 1000) / ms,
  loop: delays.take(),
  growthBytes: peak - before,
};
clearInterval(sampling);
process.stdout.write(JSON.stringify(load));
