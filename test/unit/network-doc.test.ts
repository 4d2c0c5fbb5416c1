/**
 * docs/network.md has the messages, reasons and bounds of the code.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { maxQuestionsPerSecond } from "../../worker/egress/dns.ts";
import { maxHeaderBytes } from "../../worker/egress/http-forward.ts";
import { headersTimeoutMs } from "../../worker/egress/http-server.ts";
import { maxNames } from "../../worker/egress/names.ts";
import { maxConnectionsInAll, idleMs } from "../../worker/egress/tcp.ts";
import { connectTimeoutMs } from "../../worker/egress/upstream.ts";
import { refusalReasons } from "../../worker/protocol/execution.ts";
import { maxPorts, maxRules, networkField } from "../../worker/protocol/network-rules.ts";

const text = readFileSync(join(import.meta.dirname, "../../docs/network.md"), "utf8");

/** The cells of the rows of a table, by the title of its first column. */
function tableOf(title: string): readonly (readonly string[])[] {
  const [, rows = ""] = text.split(`\n| ${title} |`);
  const [table = ""] = rows.split("\n\n");
  return table
    .split("\n")
    .slice(2)
    .map((row) => row.slice(2, -2).split(" | "));
}

/** What stands between the first two backquotes. */
const quotedIn = (cell = ""): string => cell.split("`")[1] ?? "";

test("wrong entries get the messages that are shown", () => {
  const rows = tableOf("Entry");
  expect(rows.length).toBeGreaterThan(5);
  for (const [entry, message] of rows) {
    const { error } = networkField.safeParse({ allow: [quotedIn(entry)] });
    const messages = JSON.stringify(error?.issues).replaceAll('\\\\\\"', '\\"');
    const end = JSON.stringify(quotedIn(message)).slice(1);
    expect({ entry, messages }).toEqual({
      entry,
      messages: expect.stringContaining(end) as string,
    });
  }
});

test("the reasons of refusals are those of answers", () => {
  expect(tableOf("`reason`").map(([reason]) => quotedIn(reason))).toEqual(refusalReasons);
});

test("the bounds are those of the code", () => {
  const seconds = (ms: number): string => `${ms / 1_000} s`;
  expect(tableOf("Bound").map(([, value]) => value)).toEqual([
    `\`max_connections\`, ${maxConnectionsInAll}`,
    "256 KiB",
    `${seconds(connectTimeoutMs)}, 4`,
    `${idleMs / 60_000} min`,
    `${maxHeaderBytes / 1024} KiB, ${seconds(headersTimeoutMs)}`,
    `${maxQuestionsPerSecond}, ${maxNames}`,
    `${maxRules}, ${maxPorts}, 64`,
  ]);
});
