/**
 * `npm run bench`: what a call costs, next to what its parts cost, all in one run.
 *
 * Options: a number of rounds; `--document` to put the table into docs/benchmarks.md.
 */
import { parseArgs } from "node:util";
import { measure } from "./measure.ts";
import { formatReport, makeReport, saveReport, writeIntoDocument } from "./report.ts";
import { openBench } from "./rows.ts";

const defaultRounds = "100";
const root = new URL("../", import.meta.url).pathname;

const { values, positionals } = parseArgs({
  options: { document: { type: "boolean", default: false } },
  allowPositionals: true,
});
const rounds = Number(positionals[0] ?? defaultRounds);
if (!Number.isInteger(rounds) || rounds < 1)
  throw new Error(`not a number of rounds: ${positionals[0]}`);

await using bench = await openBench();
const report = await makeReport(root, rounds, bench, await measure(bench.rows, rounds));
console.log(formatReport(report));
console.log(`\nWritten to ${await saveReport(root, report)}`);
if (values.document) await writeIntoDocument(root, report);
