/**
 * A tool that loads as long as one with large packages does, about 100 ms: much of what Node has,
 * and code made here.
 */
import "node:child_process";
import "node:cluster";
import "node:crypto";
import "node:dgram";
import "node:dns/promises";
import "node:http2";
import "node:https";
import "node:inspector";
import "node:readline/promises";
import "node:repl";
import "node:stream/web";
import "node:test";
import "node:tls";
import "node:worker_threads";
import "node:zlib";

/** As many functions as take the rest of the time to compile and to run once. */
const functionCount = 6_000;

const names = Array.from({ length: functionCount }, (_, index) => `f${index}`);
const functions = names.map(
  (name, index) => `function ${name}(sum) { const one = { id: ${index} }; return sum + one.id; }`,
);
const run = `return [${names.join(",")}].reduce((sum, each) => each(sum), 0)`;

/** What they make together. */
export const sum = new Function(`${functions.join("\n")}\n${run}`)();

export async function nothing() {
  return {};
}
