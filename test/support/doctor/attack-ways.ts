/**
 * Every attack under every profile, as `str-worker doctor --attack` runs them, by a kind of worker.
 */
import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { type AttackStart, isMade } from "../../../worker/doctor/attacks/attack-starts.ts";
import { attacks } from "../../../worker/doctor/attacks/catalog.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { firstPrivateDirectory } from "../../../worker/sandbox/path-permissions.ts";
import { reachableDirectory } from "../workers/rig.ts";
import { isRoot } from "../is-root.ts";

const entry = fileURLToPath(new URL("../../../worker/main.ts", import.meta.url));
const privateDirectory = await firstPrivateDirectory(import.meta.dirname);
/** Milliseconds for all attacks under all profiles by all starts on a busy machine. */
const timeoutMs = 30 * 60_000;

interface Row {
  readonly id: string;
  readonly profile: string;
  readonly start: AttackStart;
  readonly verdict: string;
  readonly reason?: string;
  readonly evidence: string;
}

interface Report {
  readonly ok: boolean;
  readonly profiles: readonly {
    readonly profile: string;
    readonly start: string;
    readonly works: boolean;
    readonly unenforced: readonly string[];
  }[];
  readonly attacks: readonly Row[];
}

/** Who attacks, and how. */
export interface Way {
  readonly who: string;
  /** What runs the doctor. */
  readonly prefix: readonly string[];
  readonly needsRoot: boolean;
  readonly unenforced: readonly string[];
  /** What is asked for by `--start`, and what is attacked then. */
  readonly choice: string;
  readonly starts: readonly AttackStart[];
  /** The only profile that is attacked; every one unless given. */
  readonly profile?: string;
}

/** An ordinary user without any capability, or the way of root to one. */
export const asUser: readonly string[] = [
  ...["setpriv", "--reuid", "60002", "--regid", "60002", "--clear-groups"],
  ...["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"],
];

/** What other users are for is the same for every start of calls. */
export const coldStart = { choice: "cold", starts: ["cold"] } as const;

/** The tests of one way: each profile, by each start. */
export function describeAttacks(way: Way): void {
  const { who, prefix, needsRoot, unenforced, starts } = way;
  describe(`attacked by way of ${who}`, () => {
    const reason =
      needsRoot && !isRoot
        ? "needs root"
        : prefix.length > 0 && privateDirectory !== undefined
          ? "the checkout is private to root"
          : undefined;
    let report: Report;

    beforeAll(async () => {
      if (reason !== undefined) return;
      report = await attackedBy(way);
    }, timeoutMs);

    const profiles = way.profile === undefined ? [...builtInProfiles.keys()] : [way.profile];
    const cases = profiles.flatMap((profile) => starts.map((start) => [profile, start] as const));
    test.for(cases)(
      "the profile %s holds, by the start %s",
      { tags: "promise-S2" },
      ([profile, start], context) => {
        context.skip(reason !== undefined, reason);
        const rows = report.attacks.filter((row) => row.profile === profile && row.start === start);
        const made = attacks.filter((attack) => isMade(attack, start));
        expect(rows.map(({ id }) => id)).toEqual(made.map(({ id }) => id));
        expect(rows.filter(({ verdict }) => ["not-held", "broken"].includes(verdict))).toEqual([]);
        const uses = report.profiles.filter((found) => found.profile === profile);
        expect(uses.map((use) => use.start)).toEqual(starts.filter((one) => one !== "import"));
        for (const use of uses) expect(use).toMatchObject({ works: true, unenforced });
        expect(report.ok).toBe(true);
      },
    );
  });
}

async function attackedBy({ prefix, choice, profile }: Way): Promise<Report> {
  const base = await reachableDirectory();
  try {
    const [file = "", ...rest] = [...prefix, process.execPath, entry];
    const environment = { PATH: process.env["PATH"] ?? "", SANDBOX_PYTHON_BIN: "/usr/bin/python3" };
    const stdout = await new Promise<string>((resolve, reject) => {
      const only = profile === undefined ? [] : ["--profile", profile];
      const argv = [...rest, "doctor", "--attack", "--json", "--start", choice, ...only];
      const options = { env: environment, cwd: base, timeout: timeoutMs, maxBuffer: 2 ** 26 };
      execFile(file, argv, options, (error, out, err) => {
        if (out === "") reject(new Error(err, { cause: error }));
        else resolve(out);
      });
    });
    return JSON.parse(stdout) as Report;
  } finally {
    await rm(base, { recursive: true, force: true });
  }
}
