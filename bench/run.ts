/**
 * `npm run bench`: what a call costs next to what its parts cost, what a list of hosts costs next
 * to none, what its artifacts cost next to the bare means, and what calls by tools and executions
 * of the library cost, all in one run.
 *
 * Options: a number of rounds; `--network`, `--artifacts`, `--gateway` and `--runtime` for these
 * only; `--document` to put tables and plots into docs/. `--soak MINUTES` instead of everything
 * else makes calls at a fixed rate, `--rate` a second, through the broker `--broker`. `--sizing`
 * instead of everything else predicts and measures how many calls workers serve. `--beside DIR`
 * instead of everything else measures calls in turns with those of another checkout's worker.
 */
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import { measureArtifacts } from "./artifacts/run.ts";
import { formatArtifacts } from "./artifacts/table.ts";
import { measureBeside } from "./beside/run.ts";
import { formatBeside } from "./beside/table.ts";
import {
  writeArtifactsIntoDocument,
  writeBesideIntoDocument,
  writeGatewayIntoDocument,
  writeIntoDocument,
  writeNetworkIntoDocument,
  writeRuntimeIntoDocument,
  writeSizingIntoDocument,
  writeSoakIntoDocument,
} from "./document.ts";
import { measureGateway } from "./gateway/run.ts";
import { formatGateway } from "./gateway/table.ts";
import { measureNetwork } from "./network/run.ts";
import { formatNetwork } from "./network/table.ts";
import { hostOf, makeReport, saveReport } from "./report.ts";
import { measureAll } from "./rows.ts";
import { measureRuntime } from "./runtime/run.ts";
import { formatRuntime } from "./runtime/table.ts";
import { sizingOptions } from "./sizing/options.ts";
import { measureSizing } from "./sizing/run.ts";
import { formatSizing } from "./sizing/table.ts";
import { soakOptions } from "./soak/options.ts";
import { measureSoak } from "./soak/run.ts";
import { formatSoak } from "./soak/table.ts";
import { formatReport } from "./table.ts";

const defaultRounds = "100";
const root = fileURLToPath(new URL("../", import.meta.url));

const { values, positionals } = parseArgs({
  options: {
    document: { type: "boolean", default: false },
    network: { type: "boolean", default: false },
    artifacts: { type: "boolean", default: false },
    gateway: { type: "boolean", default: false },
    runtime: { type: "boolean", default: false },
    sizing: { type: "boolean", default: false },
    soak: { type: "string" },
    beside: { type: "string" },
    rate: { type: "string" },
    broker: { type: "string" },
  },
  allowPositionals: true,
});
const rounds = Number(positionals[0] ?? defaultRounds);
if (!Number.isInteger(rounds) || rounds < 1)
  throw new Error(`not a number of rounds: ${positionals[0]}`);

const sizing = sizingOptions(values);
const soak = sizing === undefined ? soakOptions(values) : undefined;
const { beside } = values;
const isAlone = [sizing, soak, beside].some((each) => each !== undefined);
const { network, artifacts, gateway, runtime } = values;
const isWhole = ![network, artifacts, gateway, runtime, isAlone].includes(true);

if (isWhole) {
  const report = await makeReport(root, rounds, await measureAll(rounds));
  console.log(formatReport(report));
  console.log(`\nWritten to ${await saveReport(root, report)}`);
  if (values.document) await writeIntoDocument(root, report);
}

const host = await hostOf(root);
if (isWhole || network) {
  const report = { ...host, rounds, ...(await measureNetwork(rounds)) };
  console.log(`\n${formatNetwork(report)}`);
  console.log(`\nWritten to ${await saveReport(root, report, "-network")}`);
  if (values.document) await writeNetworkIntoDocument(root, report);
}

if (isWhole || artifacts) {
  const report = { ...host, rounds, ...(await measureArtifacts(rounds)) };
  console.log(`\n${formatArtifacts(report)}`);
  console.log(`\nWritten to ${await saveReport(root, report, "-artifacts")}`);
  if (values.document) await writeArtifactsIntoDocument(root, report);
}

if (isWhole || gateway) {
  const report = { ...host, rounds, ...(await measureGateway(rounds)) };
  console.log(`\n${formatGateway(report)}`);
  console.log(`\nWritten to ${await saveReport(root, report, "-gateway")}`);
  if (values.document) await writeGatewayIntoDocument(root, report);
}

if (isWhole || runtime) {
  const report = { ...host, rounds, ...(await measureRuntime(rounds)) };
  console.log(`\n${formatRuntime(report)}`);
  console.log(`\nWritten to ${await saveReport(root, report, "-runtime")}`);
  if (values.document) await writeRuntimeIntoDocument(root, report);
}

if (beside !== undefined) {
  const { commit: before } = await hostOf(beside);
  const report = { ...host, rounds, before, ...(await measureBeside(beside, rounds)) };
  console.log(`\n${formatBeside(report)}`);
  console.log(`\nWritten to ${await saveReport(root, report, "-beside")}`);
  if (values.document) await writeBesideIntoDocument(root, report);
}

if (soak !== undefined) {
  const report = { ...host, ...(await measureSoak(soak)) };
  console.log(`\n${formatSoak(report)}`);
  console.log(`\nWritten to ${await saveReport(root, report, "-soak")}`);
  if (values.document) await writeSoakIntoDocument(root, report);
}

if (sizing !== undefined) {
  const report = { ...host, ...(await measureSizing(sizing)) };
  console.log(`\n${formatSizing(report)}`);
  console.log(`\nWritten to ${await saveReport(root, report, "-sizing")}`);
  if (values.document) await writeSizingIntoDocument(root, report);
}
