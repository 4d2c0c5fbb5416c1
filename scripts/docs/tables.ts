/**
 * The tables that documents repeat of the code, by name.
 */
import { describeVariables } from "../../worker/config/variables.ts";
import type { Attack } from "../../worker/doctor/attacks/attack.ts";
import { attacks } from "../../worker/doctor/attacks/catalog.ts";
import { registryVariables } from "../../worker/environments/registry/variables.ts";
import { errorCodeFacts } from "../../worker/protocol/errors.ts";
import { isPublicOnly } from "../../worker/protocol/network-meet.ts";
import { limitFacts } from "../../worker/protocol/resource-limits.ts";
import { builtInProfiles, type Profile } from "../../worker/sandbox/profile.ts";
import { auditEvents, auditFields } from "../../worker/telemetry/audit/event.ts";
import { events } from "../../worker/telemetry/events.ts";
import type { LogEvent } from "../../worker/telemetry/events/event.ts";
import { metrics } from "../../worker/telemetry/metrics/catalog.ts";
import type { MetricFacts } from "../../worker/telemetry/metrics/catalog/facts.ts";
import { metricLabels } from "../../worker/telemetry/metrics/catalog/labels.ts";
import { exampleImages } from "./example-images.ts";
import { mebibytes, thousands } from "./numbers.ts";
import { protocolLimits } from "./protocol-limits.ts";
import { storeFailures } from "./store-failures.ts";
import { unpromisedUnder } from "./unpromised.ts";

/** The lines of each table, head included. */
export const tables: Readonly<Record<string, readonly string[]>> = {
  variables: table(
    ["Variable", "Default", "Accepted", "Meaning"],
    describeVariables().map(({ name, defaultText, accepted, description }) => [
      code(name),
      defaultText === undefined ? "" : code(defaultText),
      accepted,
      description,
    ]),
  ),
  "error codes": table(
    ["Code", "Retry", "Cause", "What to do"],
    Object.entries(errorCodeFacts).map(([name, { retryable, cause, advice }]) => [
      code(name),
      yesOrNo(retryable),
      cause,
      advice,
    ]),
  ),
  profiles: table(["", ...builtInProfiles.keys()], profileRows()),
  limits: table(
    ["Limit", "From", "To", "What it bounds"],
    Object.values(limitFacts).map(({ field, min, max, description }) => [
      code(field),
      thousands(min),
      thousands(max),
      description,
    ]),
  ),
  "limits of messages": table(["What", "Limit", "Beyond it"], protocolLimits),
  "store failures": table(["Message", "Cause", "What to do"], storeFailures),
  "log events": table(
    ["Event", "Level", "Message", "When", "Facts", "What to do"],
    Object.entries(events).map(([name, event]) => eventRow(name, event)),
  ),
  metrics: table(
    ["Metric", "Type", "Labels", "Meaning"],
    Object.entries<MetricFacts>(metrics).map(([name, { type, labels, help }]) => [
      code(name),
      type,
      labels.map(code).join(", "),
      help,
    ]),
  ),
  "metric labels": table(
    ["Label", "Value"],
    Object.entries(metricLabels).map(([name, meaning]) => [code(name), meaning]),
  ),
  "audit events": table(
    ["Event", "Meaning"],
    Object.entries(auditEvents).map(([name, meaning]) => [code(name), meaning]),
  ),
  "audit fields": table(
    ["Field", "In", "Meaning"],
    Object.entries(auditFields).map(([name, [present, meaning]]) => [code(name), present, meaning]),
  ),
  "registry variables": table(
    ["Variable", "Of", "Decides what is installed", "Also used as"],
    registryVariables.map(({ name, installers, decides, also }) => [
      code(name),
      installers.join(", "),
      yesOrNo(decides),
      also === undefined ? "" : code(also),
    ]),
  ),
  ...exampleImages,
  ...attackTables(),
};

function table(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line)];
}

function eventRow(
  name: string,
  { level, message, when, facts, action = "" }: LogEvent,
): readonly string[] {
  const names = Object.entries(facts).map(([fact, kind]) =>
    code(kind.endsWith("?") ? `${fact}?` : fact),
  );
  return [code(name), level, code(message), when, names.join(", "), action];
}

function profileRows(): readonly (readonly string[])[] {
  const cells: Readonly<Record<string, (profile: Profile) => string>> = {
    "memory of the sandbox": ({ limits }) => mebibytes(limits.memoryBytes),
    "CPU time of the sandbox": ({ limits }) => `${limits.cpuSeconds} s`,
    CPUs: ({ limits }) => String(limits.cpus),
    "largest file": ({ limits }) => mebibytes(limits.fileSizeBytes),
    "open files of each process": ({ limits }) => String(limits.openFiles),
    "processes and threads of the sandbox": ({ limits }) => String(limits.processes),
    "`/tmp` and `/dev/shm`, each": ({ limits }) => mebibytes(limits.tmpBytes),
    "what the tool adds to its work directory": ({ limits }) => mebibytes(limits.diskBytes),
    "files that the tool makes": ({ limits }) => thousands(limits.files),
    "what the tool writes to its status pipe": ({ limits }) => mebibytes(limits.statusBytes),
    "`/var`": ({ hasVar, limits }) => (hasVar ? `private, ${mebibytes(limits.tmpBytes)}` : "none"),
    "`/etc`": filesOfEtc,
    "pseudo terminals": ({ terminals }) => (terminals ? "as many as the host has" : "none"),
    network: networkText,
  };
  const profiles = [...builtInProfiles.values()];
  return Object.entries(cells).map(([label, cell]) => [label, ...profiles.map(cell)]);
}

function filesOfEtc({ readsEtc, network }: Profile): string {
  if (readsEtc) return "all of it";
  if (network === "none") return "three entries";
  return network === "host" ? "what name service and TLS need" : "what TLS needs";
}

function networkText({ network }: Profile): string {
  if (network === "host") return "the host's";
  return isPublicOnly(network) ? "public addresses" : "none";
}

/** A table for each group of attacks, and one of those that an import may reach. */
function attackTables(): Readonly<Record<string, readonly string[]>> {
  const head = ["attack", "what it tries", "not promised under"];
  const groups = Map.groupBy(attacks, ({ group }) => `attacks on ${group}`);
  const rowOf = (attack: Attack): readonly string[] => [
    code(attack.id),
    attack.title,
    unpromisedUnder(attack),
  ];
  const atImport = attacks.flatMap(({ id, notPromisedAtImport: reason }) =>
    reason === undefined ? [] : [[code(id), reason]],
  );
  return {
    ...Object.fromEntries(Array.from(groups, ([name, own]) => [name, table(head, own.map(rowOf))])),
    "attacks by an import": table(["attack at import", "why"], atImport),
  };
}

function code(text: string): string {
  return `\`${text}\``;
}

function yesOrNo(is: boolean): string {
  return is ? "yes" : "no";
}
