/**
 * Every attack under every profile, as `str-worker doctor --attack` runs them, by every kind of worker: root, an ordinary
 * user, and an ordinary user in what a container makes of /proc.
 */
import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { attacks } from "../../worker/doctor/catalog.ts";
import { builtInProfiles } from "../../worker/sandbox/profile.ts";
import { firstPrivateDirectory } from "../../worker/sandbox/reach.ts";
import { reachableDirectory } from "../support/rig.ts";

const entry = new URL("../../worker/main.ts", import.meta.url).pathname;
const isRoot = process.getuid?.() === 0;
const privateDirectory = await firstPrivateDirectory(import.meta.dirname);
/** Milliseconds for all attacks under all profiles on a busy machine. */
const timeoutMs = 15 * 60_000;

/** An ordinary user without any capability, or the way to one. */
const user = "60002";
const asUser = [
  ...["setpriv", "--reuid", user, "--regid", user, "--clear-groups"],
  ...["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"],
];
/** Parts of /proc are covered, as in a container: then the kernel lets nobody mount a new one. */
const maskingProc = [
  ...["unshare", "--mount", "--propagation", "private", "sh", "-c"],
  ...['mount --bind /dev/null /proc/timer_list && mount -t tmpfs none /proc/fs && exec "$@"', "sh"],
];

interface Row {
  readonly id: string;
  readonly profile: string;
  readonly verdict: string;
  readonly reason?: string;
  readonly evidence: string;
}

interface Report {
  readonly ok: boolean;
  readonly profiles: readonly { profile: string; works: boolean; unenforced: string[] }[];
  readonly attacks: readonly Row[];
}

const workers = [
  { who: "root", prefix: [], needsRoot: true, unenforced: [] },
  { who: "an ordinary user", prefix: isRoot ? asUser : [], needsRoot: false, unenforced: [] },
  {
    who: "a user without capabilities and with a masked /proc",
    prefix: [...maskingProc, ...asUser],
    needsRoot: true,
    unenforced: ["fresh-proc"],
  },
];

describe.each(workers)("attacked by way of $who", ({ prefix, needsRoot, unenforced }) => {
  const reason =
    needsRoot && !isRoot
      ? "needs root"
      : prefix.length > 0 && privateDirectory !== undefined
        ? "the checkout is private to root"
        : undefined;
  let report: Report;

  beforeAll(async () => {
    if (reason !== undefined) return;
    report = await attackedBy(prefix);
  }, timeoutMs);

  test.for([...builtInProfiles.keys()])("the profile %s holds", (profile, context) => {
    context.skip(reason !== undefined, reason);
    const rows = report.attacks.filter((row) => row.profile === profile);
    expect(rows.map(({ id }) => id)).toEqual(attacks.map(({ id }) => id));
    expect(rows.filter(({ verdict }) => ["not-held", "broken"].includes(verdict))).toEqual([]);
    const known = report.profiles.find((found) => found.profile === profile);
    expect(known).toMatchObject({ works: true, unenforced });
    expect(report.ok).toBe(true);
  });
});

async function attackedBy(prefix: readonly string[]): Promise<Report> {
  const base = await reachableDirectory();
  try {
    const [file = "", ...rest] = [...prefix, process.execPath, entry];
    const environment = { PATH: process.env["PATH"] ?? "", SANDBOX_PYTHON_BIN: "/usr/bin/python3" };
    const stdout = await new Promise<string>((resolve, reject) => {
      const argv = [...rest, "doctor", "--attack", "--json"];
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
