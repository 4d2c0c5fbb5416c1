/**
 * The attacks that are quick, in this host's real sandbox; and the suite itself, whether it sees
 * what does not hold.
 */
import { getServers, setServers } from "node:dns";
import { cp, rm, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Attack } from "../../../worker/doctor/attacks/attack.ts";
import { callTimeoutSeconds } from "../../../worker/doctor/attacks/attack-call.ts";
import { attackLimits } from "../../../worker/doctor/attacks/attack-profile.ts";
import { attacks } from "../../../worker/doctor/attacks/catalog.ts";
import {
  type AttackReport,
  allHeld,
  attackJson,
  attackTable,
} from "../../../worker/doctor/attacks/attack-report.ts";
import type { Invoker } from "../../../worker/invocation/call-context.ts";
import type { InvocationOutcome } from "../../../worker/protocol/invocation.ts";
import { type StartKind, startKinds } from "../../../worker/protocol/execution.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { SandboxError, workDirInside } from "../../../worker/sandbox/sandbox.ts";
import { attackHere } from "../../support/doctor/attack-run.ts";
import { pythonWithoutSockets } from "../../support/sandboxes/network-place.ts";
import { reachableDirectory } from "../../support/workers/rig.ts";
import { type Weakness, weakBubblewrap } from "./weak-bubblewrap.ts";

const programs = fileURLToPath(new URL("../../../attacks", import.meta.url));
/** Milliseconds that a hundred calls, one after the other, may take on a busy machine. */
const manyCallsMs = 240_000;

/** What is said of each attack, by its id, under the first profile. */
function verdicts({ rows }: AttackReport): Record<string, string> {
  return Object.fromEntries(rows.map(({ id, verdict }) => [id, verdict]));
}

function named(...ids: readonly string[]): readonly Attack[] {
  const found = attacks.filter(({ id }) => ids.includes(id));
  expect(found.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  return found;
}

describe("this host's sandbox", () => {
  const fast = attacks.filter(({ isFast }) => isFast);
  const groups = [...new Set(fast.map(({ group }) => group))];
  const oneOfEachGroup = groups.map((name) => fast.find(({ group }) => group === name)!);

  async function holds(profile: string, chosen: readonly Attack[]): Promise<void> {
    const report = await attackHere({ attacks: chosen, profiles: [profile] });
    expect(report.rows.map(({ id }) => id)).toEqual(chosen.map(({ id }) => id));
    const failed = ({ verdict }: (typeof report.rows)[number]) =>
      verdict === "not-held" || verdict === "broken";
    expect(report.rows.filter(failed)).toEqual([]);
    expect(report.profiles).toMatchObject([{ name: profile, works: true }]);
    expect(allHeld(report)).toBe(true);
  }

  test(
    "holds an attack of each group, and lets tools work, under restrictive",
    { tags: "promise-S2", timeout: manyCallsMs },
    () => holds("restrictive", oneOfEachGroup),
  );
  test.for(["restrictive", "standard"])(
    "holds what is promised, and lets tools work, under %s",
    { tags: ["full", "promise-S2"], timeout: manyCallsMs },
    (profile) => holds(profile, fast),
  );

  test("is seen to be reached around where a profile says so", { tags: "full" }, async () => {
    const network = named("reach_loopback_service");
    const report = await attackHere({ attacks: network, profiles: ["standard", "permissive"] });
    expect(report.rows).toMatchObject([
      { profile: "standard", verdict: "held" },
      {
        profile: "permissive",
        verdict: "not-promised",
        reason: "the profile permissive has the host's network",
        evidence: expect.stringContaining("it says"),
      },
    ]);
  });
});

test("a name server on 127.0.0.1 is not taken for the worker's own", async () => {
  const servers = getServers();
  const useServers = (given: readonly string[]): void => {
    setServers(given);
    syncBuiltinESMExports();
  };
  try {
    useServers(["127.0.0.1"]);
    const report = await attackHere({ attacks: named("resolve_names"), profiles: ["standard"] });
    expect(report.rows).toMatchObject([{ verdict: "held", baseline: { reached: true } }]);
  } finally {
    useServers(servers);
  }
});

describe("a list of hosts", { tags: "promise-S34" }, () => {
  const egress = attacks.filter(({ group }) => group === "egress");

  test("holds every attack, by each start of calls", { tags: "full" }, async () => {
    const report = await attackHere({ attacks: egress, profiles: ["standard"], start: "all" });
    const made = report.rows.map(({ id, start, verdict }) => [id, start, verdict]);
    const expected = egress.flatMap(({ id }) =>
      startKinds.map((start) => [id, start, "held"] as const),
    );
    expect(made).toEqual(expected);
    expect(report.rows.filter(({ baseline }) => !baseline.reached)).toEqual([]);
  });

  test("is not attacked where the host keeps none", { tags: "full" }, async () => {
    const base = await reachableDirectory();
    try {
      const pythonBin = await pythonWithoutSockets(base);
      const report = await attackHere(
        { attacks: egress, profiles: ["restrictive"] },
        { SANDBOX_PYTHON_BIN: pythonBin },
      );
      expect(
        new Set(report.rows.map(({ verdict, reason }) => `${verdict}: ${reason?.split(";")[0]}`)),
      ).toEqual(
        new Set([
          "not-promised: no tool with a list of hosts is served here: this host cannot keep a tool to some hosts",
        ]),
      );
      expect(report.rows).toHaveLength(egress.length);
    } finally {
      await rm(base, { recursive: true, force: true });
    }
  });
});

describe("a hole", () => {
  let directory: string;

  beforeAll(async () => {
    directory = await reachableDirectory();
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  const holes: readonly (readonly [string, Weakness, readonly string[], readonly string[]])[] = [
    [
      "a directory of the host, read-only",
      { first: ["--ro-bind", "/var/tmp", "/var/tmp"] },
      ["read_host_secret", "reach_socket_file"],
      ["write_outside", "inherited_environment"],
    ],
    [
      "the work directories of other calls",
      {
        shell: `known="\${0%/*}/edited/known"
                touch $known
                for other in $(cat $known); do
                  [ -d $other ] && own=(--bind $other /var/\${other##*/} "\${own[@]}")
                done
                grep -zxB1 ${workDirInside} $options | tr '\\0' '\\n' | head -n 1 >> $known`,
      },
      ["read_sibling_work_dir"],
      ["read_host_secret"],
    ],
    [
      "a directory of the host, writable",
      { first: ["--bind", "/var/tmp", "/var/tmp"] },
      ["write_outside"],
      ["reach_loopback_service"],
    ],
    [
      "the host's network",
      { last: ["--share-net"] },
      ["reach_loopback_service", "reach_abstract_socket", "listen_on_host", "resolve_names"],
      ["read_host_secret", "open_raw_sockets"],
    ],
    [
      // Where /proc hides processes of other users, of other user namespaces as well, nothing of
      // them can be read.
      "the host's processes",
      {
        edit: "s|^--unshare-all$|--unshare-user\\x00--unshare-uts|; s|^--proc$|--ro-bind\\x00/proc|",
      },
      ["list_host_processes"],
      ["inherited_environment"],
    ],
    [
      "variables and options of who started it",
      {
        shell: `export LEFT=$(cat /var/tmp/str-attack-*/secret)
                own+=(--setenv LEFT "$LEFT")`,
      },
      [
        "first_process_environment",
        "first_process_arguments",
        "worker_environment",
        "inherited_environment",
      ],
      ["inherited_descriptors"],
    ],
    [
      "descriptors of who started it",
      { shell: "exec 251< /etc/hostname" },
      ["inherited_descriptors"],
      ["read_host_secret"],
    ],
  ];

  test.each(holes)(
    "is found: %s",
    { tags: ["full", "promise-S2"] },
    async (_what, weakness, found, held) => {
      const report = await attackHere(
        {
          attacks: named(...found, ...held),
          profiles: ["restrictive"],
          bwrapBin: "/usr/bin/bwrap",
        },
        { SANDBOX_BWRAP_BIN: await weakBubblewrap(directory, weakness) },
      );
      expect(verdicts(report)).toEqual({
        ...Object.fromEntries(found.map((id) => [id, "not-held"])),
        ...Object.fromEntries(held.map((id) => [id, "held"])),
      });
      expect(allHeld(report)).toBe(false);
    },
  );
});

describe("what proves nothing", () => {
  const own = { group: "files", title: "of this test", isFast: true } as const;
  const waitingVictim = "import time\n\n\ndef victim(token, ctx):\n    time.sleep(60)\n";
  let directory: string;

  beforeAll(async () => {
    directory = await reachableDirectory();
    await cp(programs, directory, { recursive: true });
    const write = (id: string, body: string): Promise<void> =>
      writeFile(join(directory, `${id}.py`), `import os\n\n\ndef attack(target):\n    ${body}\n`);
    await write("never", 'return {"reached": False, "evidence": "it does not try"}');
    await write("always", 'return {"reached": True, "evidence": "it says so"}');
    await write("raises", "raise ValueError(1)");
    await write("ends", "os._exit(3)");
    await write(
      "tells_limits",
      'import resource; return {"reached": True, "evidence": str(resource.getrlimit(resource.RLIMIT_CPU)[0])}',
    );
    await write("says_nothing", "return None");
    await write(
      "adds_up",
      [
        'path = target["open_directory"] + "/rounds"',
        'open(path, "a").write(str(target["round"]))',
        'return {"reached": True, "evidence": open(path).read()}',
      ].join("; "),
    );
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  test("is broken, however little it reached", { tags: ["full", "promise-S2"] }, async () => {
    const report = await attackHere({
      attacks: [
        { ...own, id: "never" },
        { ...own, id: "raises" },
        { ...own, id: "ends" },
        { ...own, id: "says_nothing" },
        { ...own, id: "read_host_secret", manifest: { package: "there-is-none-of-this-name" } },
      ],
      profiles: ["restrictive"],
      programsDir: directory,
    });
    expect(new Set(Object.values(verdicts(report)))).toEqual(new Set(["broken"]));
    expect(allHeld(report)).toBe(false);
  });

  test(
    "is not promised, or has no baseline, where the catalog says why",
    { tags: "full" },
    async () => {
      const report = await attackHere({
        attacks: [
          { ...own, id: "always", notPromised: () => "because" },
          { ...own, id: "never", noBaseline: () => "as this is a test" },
          { ...own, id: "read_host_secret", notPromised: ({ name }) => name },
        ],
        profiles: ["restrictive"],
        programsDir: directory,
      });
      expect(report.rows.map(({ verdict, reason }) => [verdict, reason])).toEqual([
        ["not-promised", "because"],
        ["no-control", "as this is a test"],
        ["not-promised", "restrictive"],
      ]);
      expect(allHeld(report)).toBe(true);
    },
  );

  test("an attack that reaches counts, whatever its baseline does", { tags: "full" }, async () => {
    const report = await attackHere({
      attacks: [
        { ...own, id: "always", noBaseline: () => "as this is a test" },
        { ...own, id: "tells_limits" },
        { ...own, id: "inherited_environment", manifest: { env: ["STR_ATTACK_TOKEN"] } },
        { ...own, id: "never", judge: () => ({ blocked: false, evidence: "the worker saw it" }) },
      ],
      profiles: ["restrictive"],
      programsDir: directory,
    });
    expect(report.rows.map(({ verdict, evidence }) => [verdict, evidence])).toEqual([
      ["not-held", "it says so"],
      ["not-held", String(attackLimits.cpuSeconds)],
      ["not-held", expect.stringContaining("STR_ATTACK_TOKEN is")],
      ["not-held", "the worker saw it"],
    ]);
  });

  test("a single call, where an attack takes several", { tags: "full" }, async () => {
    const weak = await reachableDirectory();
    try {
      const first = ["--bind", "/var/tmp", "/var/tmp"];
      const report = await attackHere(
        {
          attacks: [{ ...own, id: "adds_up", rounds: 3 }],
          profiles: ["restrictive"],
          programsDir: directory,
          bwrapBin: "/usr/bin/bwrap",
        },
        { SANDBOX_BWRAP_BIN: await weakBubblewrap(weak, { first }) },
      );
      expect(report.rows).toMatchObject([
        { verdict: "not-held", evidence: "123", baseline: { reached: true, evidence: "123" } },
      ]);
    } finally {
      await rm(weak, { recursive: true, force: true });
    }
  });

  test("a sandbox in which nothing works", async () => {
    const weak = await reachableDirectory();
    try {
      const bwrapBin = await weakBubblewrap(weak, { edit: "s|^/dev/shm$|/dev/other|" });
      const report = await attackHere(
        { attacks: [], profiles: ["restrictive"] },
        { SANDBOX_BWRAP_BIN: bwrapBin },
      );
      expect(report.profiles).toMatchObject([
        { works: false, evidence: expect.stringContaining("/dev/shm") },
      ]);
      expect(allHeld(report)).toBe(false);
    } finally {
      await rm(weak, { recursive: true, force: true });
    }
  });

  describe("a victim with another start", () => {
    type Victim = (
      invoke: Invoker["invoke"],
      ...call: Parameters<Invoker["invoke"]>
    ) => Promise<InvocationOutcome>;
    const seen = () => ({ blocked: false, evidence: "the worker saw it" });
    const besideVictim: readonly Attack[] = [
      { ...own, id: "read_host_secret", needsVictim: true },
      { ...own, id: "read_host_keys", needsVictim: true, judge: seen },
    ];

    /** Verdicts, where calls of the victim go another way. */
    async function withVictim(start: StartKind, ofVictim: Victim): Promise<unknown> {
      const { rows } = await attackHere({
        attacks: besideVictim,
        profiles: ["standard"],
        start,
        wrapInvoker: ({ invoke }) => ({
          invoke: async (invocation, context) => {
            if (!("token" in invocation.args)) return invoke(invocation, context);
            return ofVictim(invoke, invocation, context);
          },
        }),
      });
      return rows.filter((row) => row.start === start).map((row) => [row.verdict, row.reason]);
    }

    /** To the same attack's tool of another start. */
    const by =
      (start: string): Victim =>
      (invoke, invocation, context) => {
        const id = invocation.toolName.slice(invocation.toolName.indexOf(".") + 1);
        return invoke({ ...invocation, toolName: `${start}.${id}` }, context);
      };

    test("breaks what did not reach it, and nothing else", { tags: "full" }, async () => {
      expect(await withVictim("template", by("cold"))).toEqual([
        ["broken", "of the victim: its call was to have the start template, and had cold"],
        ["not-held", undefined],
      ]);
    });

    test("does the same when its call fails", { tags: "full" }, async () => {
      expect(await withVictim("cold", by("none"))).toEqual([
        ["broken", expect.stringMatching(/^the victim has ended: TOOL_NOT_AVAILABLE/)],
        ["not-held", undefined],
      ]);
    });

    test("does the same when its sandbox is not known", { tags: "full" }, async () => {
      const unknown: Victim = async (invoke, invocation, context) => {
        const outcome = await invoke(invocation, context);
        return { ...outcome, execution: undefined };
      };
      expect(await withVictim("cold", unknown)).toEqual([
        ["broken", "of the victim: its call was to have the start cold, and had no sandbox"],
        ["not-held", undefined],
      ]);
    });
  });

  test("an attack that is given up", { tags: "full" }, async () => {
    const stopping = new AbortController();
    const rows: string[] = [];
    let hasBegun = false;
    const next: Attack = {
      ...own,
      id: "always",
      // Asked when its baseline begins.
      get baseline() {
        hasBegun = true;
        return "naive-worker" as const;
      },
    };
    const attacked = attackHere(
      {
        attacks: [{ ...own, id: "read_host_secret" }, next],
        profiles: ["restrictive"],
        programsDir: directory,
        onRow: ({ id }) => {
          rows.push(id);
          stopping.abort(new Error("enough"));
        },
      },
      {},
      stopping.signal,
    );
    await expect(attacked).rejects.toThrow("enough");
    expect(rows).toEqual(["read_host_secret"]);
    expect(hasBegun).toBe(false);
  });

  test("an attack that is given up before its victim is there", { tags: "full" }, async () => {
    await writeFile(join(directory, "harmless", "victim.py"), waitingVictim);
    const stopping = new AbortController();
    let stoppedMs = NaN;
    const attack: Attack = {
      ...own,
      id: "always",
      // Asked when the victim is to be started.
      get needsVictim() {
        stoppedMs = performance.now();
        stopping.abort(new Error("enough"));
        return true;
      },
    };
    const choice = { attacks: [attack], profiles: ["restrictive"], programsDir: directory };
    await expect(attackHere(choice, {}, stopping.signal)).rejects.toThrow("enough");
    // To wait for the victim would take all of that, many times what it takes to end it.
    expect(performance.now() - stoppedMs).toBeLessThan(callTimeoutSeconds * 1000);
  });

  test("a profile that there is not, and nothing is laid out for it", async () => {
    const choice = { attacks: [], profiles: ["lenient"], programsDir: join(directory, "none") };
    await expect(attackHere(choice)).rejects.toThrow(
      new SandboxError(
        'there is no profile "lenient"; to attack there are restrictive, standard, permissive',
      ),
    );
  });

  test("profiles that are known already are not read again", { tags: "full" }, async () => {
    const choice = { attacks: [], profiles: ["restrictive"], known: builtInProfiles };
    const report = await attackHere(choice, { SANDBOX_PROFILES_FILE: join(directory, "none") });
    expect(report.profiles).toMatchObject([{ name: "restrictive", works: true }]);
  });
});

describe("the report", () => {
  const baseline = { reached: true, evidence: "reached it", durationMs: 5 };
  const where = { profile: "p", start: "template" } as const;
  const row = { group: "files", title: "try", ...where, durationMs: 7, baseline } as const;
  const report: AttackReport = {
    profiles: [
      { name: "p", start: "cold", works: true, evidence: "works", unenforced: [] },
      { name: "p", start: "template", works: true, evidence: "works", unenforced: ["seccomp"] },
    ],
    rows: [
      { ...row, id: "good", verdict: "held", reason: undefined, evidence: "e".repeat(200) },
      { ...row, id: "bad", verdict: "not-held", reason: undefined, evidence: "read it" },
      { ...row, id: "bad", start: "import", verdict: "held", reason: undefined, evidence: "" },
    ],
  };

  test("is a table with everything that is known of what failed", () => {
    expect(attackTable(report)).toBe(
      [
        `held          p  template  good  ${"e".repeat(89)}…`,
        "NOT HELD      p  template  bad   read it",
        "held          p  import    bad",
        "",
        "NOT HELD: bad under p, template (try)",
        "  in the sandbox: read it",
        "  where nothing holds it: reached it",
        "",
        "p, cold: tools work",
        "p, template: 1 held, 1 NOT HELD; tools work; not enforced here: seccomp",
        "p, import: 1 held",
      ].join("\n"),
    );
  });

  test("is JSON for machines", () => {
    expect(JSON.parse(attackJson(report))).toEqual({
      ok: false,
      profiles: [
        { profile: "p", start: "cold", works: true, evidence: "works", unenforced: [] },
        {
          profile: "p",
          start: "template",
          works: true,
          evidence: "works",
          unenforced: ["seccomp"],
        },
      ],
      attacks: [
        expect.objectContaining({ id: "good", verdict: "held" }),
        {
          id: "bad",
          group: "files",
          title: "try",
          profile: "p",
          start: "template",
          verdict: "not-held",
          evidence: "read it",
          ms: 7,
          control: { reached: true, evidence: "reached it", ms: 5 },
        },
        expect.objectContaining({ id: "bad", start: "import", verdict: "held" }),
      ],
    });
  });
});
