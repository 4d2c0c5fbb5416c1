/**
 * What the doctor prints, and that its page says the same.
 */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  type Diagnosis,
  diagnosisJson,
  diagnosisTable,
  isFit,
} from "../../../worker/doctor/report.ts";
import { type HostCheck, checkNames, defaultMinimum } from "../../../worker/sandbox/host-check.ts";

const held: HostCheck = {
  name: "user-namespaces",
  state: "held",
  finding: "they can be made",
  remedy: undefined,
};
const missing: HostCheck = {
  name: "seccomp",
  state: "missing",
  finding: "bubblewrap says: it cannot",
  remedy: `${"a kernel ".repeat(12)}with filters`,
};

function diagnosis(changes: Partial<Diagnosis> = {}): Diagnosis {
  return {
    technology: "bubblewrap 0.8.0",
    checks: [held, missing],
    minimum: ["user-namespaces"],
    ...changes,
  };
}

/** What stands below the checks. */
function lastLines(table: string): string {
  return table.slice(table.lastIndexOf("\n\n") + 2).replace(/^\*.*\n/, "");
}

describe("the table of the doctor", () => {
  test("has a line for each check, and the remedy below it", () => {
    expect(diagnosisTable(diagnosis())).toMatchInlineSnapshot(`
      "bubblewrap 0.8.0

      held     user-namespaces  they can be made
      missing  seccomp *        bubblewrap says: it cannot
                                -> a kernel a kernel a kernel a kernel a kernel a kernel a kernel a kernel
                                a kernel a kernel a kernel a kernel with filters

      * not asked for by SANDBOX_MINIMUM
      This host holds what SANDBOX_MINIMUM asks for."
    `);
  });

  test("says when a worker does not start", () => {
    const table = diagnosisTable(diagnosis({ minimum: ["seccomp"] }));
    expect(table).toMatch(/^missing +seccomp  /m);
    expect(lastLines(table)).toBe(
      "A worker does not start here: this host does not hold what is required of it: seccomp",
    );
  });

  test("names everything that keeps a worker from starting, in lines that are not too long", () => {
    const checks = checkNames.map((name) => ({ ...missing, name }));
    const [first = "", second = "", ...rest] = lastLines(
      diagnosisTable(diagnosis({ checks, minimum: defaultMinimum })),
    ).split("\n");
    expect(`${first} ${second}`).toBe(
      `A worker does not start here: this host does not hold what is required of it: ${defaultMinimum.join(", ")}`,
    );
    expect([first.length <= 100, rest]).toEqual([true, []]);
  });

  test("never shows user namespaces as something that a worker does without", () => {
    const lacking = { ...missing, name: "user-namespaces" } as const;
    const checks = [lacking, { ...held, name: "seccomp" } as const];
    const table = diagnosisTable(diagnosis({ checks, minimum: ["seccomp"] }));
    expect(table).toMatch(/^missing +user-namespaces  /m);
    expect(table).not.toContain("*");
    expect(table).toMatch(/required of it: user-namespaces$/);
  });
});

describe("the JSON of the doctor", () => {
  test("has every check with null for no remedy", () => {
    expect(JSON.parse(diagnosisJson(diagnosis()))).toEqual({
      ok: true,
      sandbox: "bubblewrap 0.8.0",
      minimum: ["user-namespaces"],
      checks: [
        {
          name: "user-namespaces",
          state: "held",
          required: true,
          finding: held.finding,
          remedy: null,
        },
        {
          name: "seccomp",
          state: "missing",
          required: false,
          finding: missing.finding,
          remedy: missing.remedy,
        },
      ],
    });
  });

  test("has user namespaces among what is required, whatever is asked for", () => {
    const told = JSON.parse(diagnosisJson(diagnosis({ minimum: ["seccomp"] }))) as object;
    expect(told).toMatchObject({
      minimum: ["user-namespaces", "seccomp"],
      checks: [
        { name: "user-namespaces", required: true },
        { name: "seccomp", required: true },
      ],
    });
  });

  test("is not ok below the minimum, and partly held is below", () => {
    expect(JSON.parse(diagnosisJson(diagnosis({ minimum: ["seccomp"] })))).toMatchObject({
      ok: false,
    });
    const partly = diagnosis({
      checks: [held, { ...missing, state: "partly" }],
      minimum: ["seccomp"],
    });
    expect(isFit(partly)).toBe(false);
  });
});

test("docs/doctor.md has every check, in order, and every member of the JSON", () => {
  const page = readFileSync(new URL("../../../docs/doctor.md", import.meta.url), "utf8");
  const section = page.split("\n## Checks\n")[1]!.split("\n## ")[0]!;
  const names = [...section.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, name]) => name);
  expect(names).toEqual(checkNames);
  const members = JSON.parse(diagnosisJson(diagnosis())) as { checks: readonly object[] };
  for (const name of Object.keys(members)) expect(page).toContain(`\`${name}\``);
  for (const name of Object.keys(members.checks[0]!))
    expect(page).toContain(`\`checks[].${name}\``);
});
