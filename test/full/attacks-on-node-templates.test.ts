/**
 * The attacks by programs that sandboxes of a Node template become, and that run while one imports
 * its tool.
 *
 * @module-tag full
 */
import { expect, test } from "vitest";
import { attacks } from "../../worker/doctor/attacks/catalog.ts";
import { attackHere } from "../support/doctor/attack-run.ts";

const timeoutMs = 30 * 60_000;

/** Those that need the Python runner, or a module that is seen alone. */
const ofPythonOnly = ["read_other_tools"];

test(
  "a sandbox of a Node template holds what one of Python's holds",
  { tags: "promise-S2", timeout: timeoutMs },
  async () => {
    const made = attacks.filter(
      ({ group, id }) => group !== "gateway" && !ofPythonOnly.includes(id),
    );
    const report = await attackHere(
      { runtime: "node", attacks: made, profiles: ["standard"], start: "template" },
      { SANDBOX_PYTHON_BIN: "/usr/bin/python3" },
      AbortSignal.timeout(timeoutMs),
    );
    const wrong = report.rows.filter(({ verdict }) => ["not-held", "broken"].includes(verdict));
    expect(wrong).toEqual([]);
    const byTemplate = report.rows.filter(({ start }) => start === "template");
    expect(byTemplate.map(({ id }) => id)).toEqual(made.map(({ id }) => id));
    expect(report.profiles).toMatchObject([{ start: "template", works: true, unenforced: [] }]);
  },
);
