/**
 * A program that saves versions of one name in the filesystem store, and prints the numbers they
 * got as JSON.
 *
 * usage: saver.ts BASE NAME COUNT LABEL; the content of the i-th save is `LABEL i`.
 */
import { createFilesystemStore } from "../../../../worker/artifacts/filesystem/store.ts";
import { Readable } from "node:stream";

const [base = "", name = "", count = "", label = ""] = process.argv.slice(2);
await using store = createFilesystemStore({ basePath: base });
const versions: number[] = [];
for (let i = 0; i < Number(count); i++) {
  const bytes = Buffer.from(`${label} ${i}`);
  const source = {
    sizeBytes: bytes.byteLength,
    open: () => Readable.from([bytes], { objectMode: false }),
  };
  const saved = await store.save(
    { root: "ed_test", userId: "user-42", sessionId: "web-1" },
    name,
    source,
    { mimeType: "text/csv" },
    new AbortController().signal,
  );
  versions.push(saved.version);
}
process.stdout.write(JSON.stringify(versions));
