/**
 * Attacks as `str-worker doctor --attack` runs them, for tests; and some of them from the command
 * line, for who writes them: `node test/support/doctor/attack-run.ts [--profile NAME] [--start
 * KIND] [--node] [--json] [ID…]`.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type AttackChoice, attackHost } from "../../../worker/attack-host.ts";
import { readConfig } from "../../../worker/config/config.ts";
import { type AttackReport, attackJson } from "../../../worker/doctor/attacks/attack-report.ts";
import { type StartChoice, startChoices } from "../../../worker/doctor/attacks/attack-starts.ts";
import { attacks } from "../../../worker/doctor/attacks/catalog.ts";
import { closeInheritedDescriptors } from "../../../worker/support/inherited-descriptors.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { createHost } from "../../../worker/wiring/host.ts";
import { readProfiles } from "../../../worker/wiring/sandboxes.ts";
import { reachableDirectory } from "../workers/rig.ts";

/** Runs attacks in a worker of the test's own; by cold starts unless the choice says otherwise. */
export async function attackHere(
  choice: Omit<AttackChoice, "known" | "start"> & Partial<Pick<AttackChoice, "known" | "start">>,
  variables: Readonly<Record<string, string>> = {},
  signal: AbortSignal = AbortSignal.timeout(600_000),
): Promise<AttackReport> {
  // As the worker's main does: what started the tests may have left its own open.
  closeInheritedDescriptors();
  const base = await reachableDirectory();
  try {
    const environment = {
      SAM_NAMESPACE: "attacks",
      DEV_BROKER_HOST: "127.0.0.1",
      MANIFEST_PATH: join(base, "none.yaml"),
      SANDBOX_WORK_DIR: join(base, "work"),
      SANDBOX_MIN_FREE_DISK_MB: "1",
      ARTIFACT_SERVICE_TYPE: "memory",
      ...variables,
    };
    const host = createHost(createLogger("error", 2), environment);
    const config = readConfig(environment);
    const known = choice.known ?? (await readProfiles(config));
    return await attackHost(config, host, { start: "cold", ...choice, known }, signal);
  } finally {
    await rm(base, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const { values, positionals: ids } = parseArgs({
    options: {
      profile: { type: "string" },
      start: { type: "string", default: "usual" },
      node: { type: "boolean", default: false },
      json: { type: "boolean" },
    },
    allowPositionals: true,
  });
  const isChoice = (word: string): word is StartChoice => startChoices.some((one) => one === word);
  if (!isChoice(values.start)) throw new Error(`--start needs one of ${startChoices.join(", ")}`);
  const report = await attackHere({
    runtime: values.node ? "node" : "python",
    attacks: attacks.filter(({ id }) => ids.length === 0 || ids.includes(id)),
    profiles: values.profile === undefined ? ["restrictive", "standard"] : [values.profile],
    start: values.start,
    onRow:
      values.json === true
        ? () => undefined
        : ({ id, profile, start, verdict, reason, evidence, durationMs, baseline }) => {
            const told = baseline.reached ? "reached" : "not reached";
            const what = `${id} (${profile}, ${start}, ${durationMs} ms)`;
            console.log(`${verdict}  ${what}${reason ? `: ${reason}` : ""}`);
            console.log(`  sandbox: ${evidence}`);
            console.log(`  baseline: ${told}, ${baseline.durationMs} ms: ${baseline.evidence}`);
          },
  });
  if (values.json === true) console.log(attackJson(report));
  else
    for (const { name, start, works, evidence } of report.profiles)
      console.log(`${name}, ${start}: ${works ? "tools work" : "TOOLS DO NOT WORK"}: ${evidence}`);
}
