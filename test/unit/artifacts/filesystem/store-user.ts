/**
 * A program that root starts, and that uses filesystem stores as the user whose id and group ids,
 * separated by commas, are its arguments. Each line of its input is a JSON array of umask, base
 * directory, and a filename to be saved or null for the problems of access; each line of its output
 * is what came of it.
 */
import { createInterface } from "node:readline/promises";
import { Readable } from "node:stream";
import { createFilesystemStore } from "../../../../worker/artifacts/filesystem/store.ts";

const scope = { root: "ed_test", userId: "user-42", sessionId: "web-1" };
const never = new AbortController().signal;

async function use([umask, basePath, filename]: [string, string, string | null]): Promise<unknown> {
  process.umask(umask);
  await using store = createFilesystemStore({ basePath });
  await store.check(never);
  if (filename === null) return (await store.access?.(never))?.problems;
  const source = { sizeBytes: 6, open: () => Readable.from([Buffer.from("worker")]) };
  return (await store.save(scope, filename, source, { mimeType: "a/b" }, never)).version;
}

const [uid, groups] = process.argv.slice(2);
const groupIds = groups!.split(",").map(Number);
// After the imports: the checkout may be private to root.
process.setgroups!(groupIds);
process.setgid!(groupIds[0]!);
process.setuid!(Number(uid));
for await (const line of createInterface({ input: process.stdin })) {
  const outcome = await use(JSON.parse(line) as [string, string, string | null]).catch(String);
  process.stdout.write(`${JSON.stringify(outcome)}\n`);
}
