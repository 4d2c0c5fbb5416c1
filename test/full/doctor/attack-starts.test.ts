/**
 * Attacks by way of sandboxes that waited for their calls: that they are made there, that they are
 * held there, and that a hole there is found.
 *
 * @module-tag full
 */
import { cp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Attack } from "../../../worker/doctor/attacks/attack.ts";
import { type AttackReport, allHeld } from "../../../worker/doctor/attacks/attack-report.ts";
import type { AttackStart, StartChoice } from "../../../worker/doctor/attacks/attack-starts.ts";
import { attacks } from "../../../worker/doctor/attacks/catalog.ts";
import { attackHere } from "../../support/doctor/attack-run.ts";
import { reachableDirectory } from "../../support/workers/rig.ts";
import { weakBubblewrap } from "../../integration/doctor/weak-bubblewrap.ts";

const programs = fileURLToPath(new URL("../../../attacks", import.meta.url));
/** At import; a process with two threads cannot be forked. */
const startsThread =
  "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n";
const fast = attacks.filter(({ isFast }) => isFast);
/** Few: `attacks.test.ts` makes all of them, by every start. */
const some = fast.filter(({ group }) => group === "files");

function failures({ rows }: AttackReport): unknown {
  return rows
    .filter(({ verdict }) => verdict === "not-held" || verdict === "broken")
    .map(({ id, start, verdict, reason, evidence }) => ({ id, start, verdict, reason, evidence }));
}

describe("the sandboxes that tools get by themselves", () => {
  test.each<[string, readonly AttackStart[]]>([
    ["restrictive", ["cold", "pool"]],
    ["standard", ["cold", "template", "import"]],
  ])(
    "hold what is promised, and let tools work, under %s",
    { tags: "promise-W6", timeout: 300_000 },
    async (profile, starts) => {
      const plans: number[] = [];
      const report = await attackHere({
        attacks: some,
        profiles: [profile],
        start: "usual",
        onPlan: (rows) => plans.push(rows),
      });
      expect(new Set(report.rows.map(({ start }) => start))).toEqual(new Set(starts));
      expect(failures(report)).toEqual([]);
      expect(allHeld(report)).toBe(true);
      expect(plans).toEqual([report.rows.length]);
      const used = report.profiles.map(({ start, works }) => [start, works]);
      expect(used).toEqual(
        starts.filter((start) => start !== "import").map((start) => [start, true]),
      );
    },
  );
});

describe("an attack by a warm start", () => {
  const own = { group: "files", title: "of this test", isFast: true } as const;
  let directory: string;

  beforeAll(async () => {
    directory = await reachableDirectory();
    await cp(programs, directory, { recursive: true });
    const lay = (id: string, text: string): Promise<void> =>
      writeFile(join(directory, `${id}.py`), text);
    await lay(
      "always",
      'def attack(target):\n    return {"reached": True, "evidence": "said so"}\n',
    );
    await lay(
      "starts_thread",
      `${startsThread}def attack(target):\n    return {"reached": True, "evidence": "it ran"}\n`,
    );
    await lay(
      "fails_at_import",
      'def attack(target):\n    raise ValueError("no") if target["round"] else None\n',
    );
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  const run = (attack: Partial<Attack> & { readonly id: string }, start: StartChoice) =>
    attackHere({
      attacks: [{ ...own, ...attack }],
      profiles: ["standard"],
      programsDir: directory,
      start,
    });

  test("is broken when its module cannot wait in the way that it is to", async () => {
    const report = await run({ id: "starts_thread" }, "template");
    expect(report.rows.map(({ start, verdict, reason }) => [start, verdict, reason])).toEqual(
      ["template", "import"].map((start) => [
        ...[start, "broken", "its call was to have the start template, and had cold"],
      ]),
    );
    expect(allHeld(report)).toBe(false);
  });

  test("is broken when its import fails", async () => {
    const report = await run({ id: "fails_at_import", group: "kernel" }, "template");
    expect(report.rows.find(({ start }) => start === "import")).toMatchObject({
      verdict: "broken",
      evidence: expect.stringContaining("IMPORT_ERROR") as string,
    });
  });

  test("that an import makes is not promised where the catalog says why", async () => {
    const report = await run(
      { id: "always", notPromisedAtImport: "as this is a test" },
      "template",
    );
    expect(report.rows.map(({ start, verdict, reason }) => [start, verdict, reason])).toEqual([
      ["template", "not-held", undefined],
      ["import", "not-promised", "as this is a test"],
    ]);
  });

  test.each<[StartChoice, readonly AttackStart[]]>([
    ["pool", ["pool"]],
    ["template", ["template", "import"]],
  ])("finds a hole in the sandboxes of %s", async (start, starts) => {
    const weak = await reachableDirectory();
    onTestFinished(() => rm(weak, { recursive: true, force: true }));
    const report = await attackHere(
      {
        attacks: attacks.filter(({ id }) => id === "read_host_secret"),
        profiles: ["restrictive"],
        bwrapBin: "/usr/bin/bwrap",
        start,
      },
      {
        SANDBOX_BWRAP_BIN: await weakBubblewrap(weak, {
          first: ["--ro-bind", "/var/tmp", "/var/tmp"],
        }),
      },
    );
    expect(report.rows.map((row) => [row.start, row.verdict])).toEqual(
      starts.map((one) => [one, "not-held"]),
    );
  });

  test("is not made where tools do not get that start", async () => {
    const programsDir = join(directory, "unfit");
    await cp(programs, programsDir, { recursive: true });
    const useful = join(programsDir, "harmless", "useful_work.py");
    await writeFile(useful, `${startsThread}${await readFile(useful, "utf8")}`);
    const report = await attackHere({
      attacks: fast.slice(0, 1),
      profiles: ["standard"],
      programsDir,
      start: "template",
    });
    expect(report.rows).toEqual([]);
    expect(report.profiles).toMatchObject([
      {
        start: "template",
        works: false,
        evidence: "its call was to have the start template, and had cold",
      },
    ]);
    expect(allHeld(report)).toBe(false);
  });
});
