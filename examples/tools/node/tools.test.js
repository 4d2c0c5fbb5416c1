/**
 * Tests of the example tools, as functions: `node --test examples/tools/node/tools.test.js`.
 */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { ToolError, createToolContext } from "secure-tool-runtime/tool";
import { addBusinessDays } from "./business-days.ts";
import { countDown } from "./count-down.js";
import { summarizeCsv } from "./summarize-csv.ts";

const outputDir = await mkdtemp(join(tmpdir(), "example-tools-"));
after(() => rm(outputDir, { recursive: true }));

describe("summarizeCsv", () => {
  /** @param {string} text */
  async function summarize(text) {
    const path = join(outputDir, "table.csv");
    await writeFile(path, text);
    const ctx = createToolContext({ artifacts: { table: path }, outputDir });
    return summarizeCsv({ table: "table.csv" }, ctx);
  }

  test("says what is in each column", async () => {
    assert.deepEqual(await summarize('city,"°C"\n"Oslo, NO",-2\r\n"say ""hi""",6\n'), {
      rows: 2,
      columns: [
        { name: "city", filled: 2, min: null, max: null, mean: null },
        { name: "°C", filled: 2, min: -2, max: 6, mean: 2 },
      ],
      output_artifact: "summary.md",
    });
    assert.match(
      await readFile(join(outputDir, "summary.md"), "utf8"),
      /^\| °C \| 2 \| -2 \| 6 \| 2 \|$/m,
    );
  });

  test("refuses a table that is none", async () => {
    await assert.rejects(summarize(""), new ToolError("table.csv is empty"));
    await assert.rejects(
      summarize("a,b\n1,2\n3\n"),
      new ToolError("Row 3 of table.csv does not have 2 fields"),
    );
  });

  test("refuses a call without the artifact", async () => {
    await assert.rejects(summarizeCsv({ table: "x.csv" }, createToolContext()), ToolError);
  });
});

describe("addBusinessDays", () => {
  test("leaves out weekends", () => {
    assert.deepEqual(addBusinessDays({ date: "2027-02-26", days: 1 }), {
      date: "2027-03-01",
      weekday: "Monday",
    });
    assert.deepEqual(addBusinessDays({ date: "2027-03-01", days: -6 }), {
      date: "2027-02-19",
      weekday: "Friday",
    });
  });

  test("refuses what is no date and no number of days", () => {
    assert.throws(() => addBusinessDays({ date: "tomorrow", days: 1 }), ToolError);
    assert.throws(() => addBusinessDays({ date: "2027-13-01", days: 1 }), ToolError);
    assert.throws(() => addBusinessDays({ date: "2027-02-26", days: "1" }), ToolError);
    assert.throws(() => addBusinessDays({ date: "2027-02-26", days: 1e9 }), ToolError);
  });
});

test("countDown tells each step", async () => {
  /** @type {string[]} */
  const statuses = [];
  const ctx = createToolContext({ onStatus: (text) => void statuses.push(text) });
  assert.deepEqual(await countDown({ from: 3, pause_seconds: 0 }, ctx), {
    counted_from: 3,
    word: "Lift-off",
  });
  assert.deepEqual(statuses, ["3...", "2...", "1..."]);
});
