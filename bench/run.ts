/**
 * `npm run bench`: what a call costs, next to what its parts cost, all in one run.
 *
 * Options: a number of rounds; `--document` to put the table and its plots into docs/.
 */
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import { writeIntoDocument } from "./document.ts";
import { makeReport, saveReport } from "./report.ts";
import { measureAll } from "./rows.ts";
import { formatReport } from "./table.ts";

const defaultRounds = "100";
const root = fileURLToPath(new URL("../", import.meta.url));

const { values, positionals } = parseArgs({
  options: { document: { type: "boolean", default: false } },
  allowPositionals: true,
});
const rounds = Number(positionals[0] ?? defaultRounds);
if (!Number.isInteger(rounds) || rounds < 1)
  throw new Error(`not a number of rounds: ${positionals[0]}`);

const report = await makeReport(root, rounds, await measureAll(rounds));
console.log(formatReport(report));
console.log(`\nWritten to ${await saveReport(root, report)}`);
if (values.document) await writeIntoDocument(root, report);
