/**
 * A program that saves versions of one name as the original does: the number after the highest,
 * content in place, then metadata in place, nothing locked. Prints the numbers as JSON.
 *
 * usage: peer-saver.ts DIRECTORY COUNT LABEL; the content of the i-th save is `LABEL i`.
 */
import { mkdir, open, readdir } from "node:fs/promises";
import { join } from "node:path";

const [directory = "", count = "", label = ""] = process.argv.slice(2);
const versions: number[] = [];
for (let i = 0; i < Number(count); i++) {
  await mkdir(directory, { recursive: true });
  const numbers = (await readdir(directory)).filter((name) => /^\d+$/.test(name)).map(Number);
  const version = Math.max(-1, ...numbers) + 1;
  await writeInPlace(join(directory, String(version)), `${label} ${i}`);
  await writeInPlace(join(directory, `${version}.meta`), `{"mime_type": "text/x-peer"}`);
  versions.push(version);
}
process.stdout.write(JSON.stringify(versions));

async function writeInPlace(path: string, content: string): Promise<void> {
  await using file = await open(path, "w");
  await file.writeFile(content);
  await file.sync();
}
