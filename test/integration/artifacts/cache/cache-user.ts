/**
 * A program that reads artifacts through a cache. It prints a line for each, and at last how often
 * their content was right.
 *
 * usage: cache-user.ts BASE CACHE MAX_BYTES ROUNDS: it reads `0.bin` to `9.bin`, whose bytes are
 * all their number.
 */
import { buffer } from "node:stream/consumers";
import { createCachedStore } from "../../../../worker/artifacts/cache/store.ts";
import { createFilesystemStore } from "../../../../worker/artifacts/filesystem/store.ts";
import { systemClock } from "../../../../worker/support/clock.ts";

const [basePath = "", directory = "", maxBytes = "", rounds = ""] = process.argv.slice(2);
await using store = createCachedStore({
  store: createFilesystemStore({ basePath }),
  identity: ["shared"],
  config: { directory, maxBytes: Number(maxBytes), minFreeBytes: 0 },
  clock: systemClock,
  log: { warn: (facts) => void process.stderr.write(`${JSON.stringify(facts)}\n`) },
});
const scope = { root: "shared", userId: "user-42", sessionId: "web-1" };
let [right, fromCache] = [0, 0];
for (let round = 0; round < Number(rounds); round++) {
  const value = Math.floor(Math.random() * 10);
  const reference = { filename: `${value}.bin`, version: 0 };
  const opened = await store.open(scope, reference, new AbortController().signal);
  if (opened.sharedPath !== undefined) fromCache++;
  const content = await buffer(opened.body);
  if (content.length === opened.sizeBytes && content.every((byte) => byte === value)) right++;
  process.stdout.write(".\n");
}
process.stdout.write(`${JSON.stringify({ right, fromCache })}\n`);
