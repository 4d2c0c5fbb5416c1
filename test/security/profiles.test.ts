/**
 * What a tool sees and may use under each profile: the table of docs/sandbox.md, checked from
 * inside.
 */
import { createServer } from "node:net";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { proxyVariables } from "../../worker/egress/http-proxy.ts";
import { inheritableDescriptors } from "../../worker/support/inherited-descriptors.ts";
import { describePerProfile } from "../support/sandboxes/per-profile.ts";
import { type Rig, startRig } from "../support/workers/rig.ts";

const MiB = 1024 * 1024;

interface View {
  readonly paths: Record<string, string | string[]>;
  readonly env: Record<string, string>;
  readonly limits: Record<string, number>;
  readonly cpus: number;
  readonly uid: number;
  readonly hostname: string;
  readonly processes: number[];
  /** What each open descriptor is. */
  readonly descriptors: Record<string, string>;
  readonly interfaces: string[];
  readonly connect: string | null;
}

const profiles = ["restrictive", "standard", "permissive"] as const;

describe("a sandbox", () => {
  let rig: Rig;

  beforeAll(async () => {
    const perProfile = (name: string) =>
      Object.fromEntries(
        profiles.map((profile) => [
          `${name}_${profile}`,
          { function: name, sandbox_profile: profile },
        ]),
      );
    rig = await startRig({
      tools: {
        ...perProfile("looks_around"),
        ...perProfile("writes"),
        ...perProfile("forks"),
        ...perProfile("fills"),
        allowed: { function: "looks_around", env: ["RIG_ALLOWED", "RIG_UNSET"] },
        sibling: { function: "sibling" },
      },
      environment: { RIG_ALLOWED: "shown", RIG_SECRET: "hidden", SOLACE_PASSWORD: "hidden" },
    });
  });
  afterAll(() => rig[Symbol.asyncDispose]());

  async function result<T>(tool: string, args = {}): Promise<T> {
    const answer = await rig.call(tool, args);
    if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
    return answer.toolResult as T;
  }

  const look = (profile: string, args = {}) => result<View>(`looks_around_${profile}`, args);

  describePerProfile("of profile %s", (profile) => {
    test(
      "runs as nobody, in namespaces of its own, with nothing inherited",
      { tags: "promise-S3" },
      async () => {
        const view = await look(profile);
        expect(view.uid).toBe(65534);
        expect(view.hostname).toBe("sandbox");
        // bubblewrap's first process and the runner; a worker on the host would be there by another
        // number.
        expect(view.processes).toEqual([1, 2]);
        // What this test's own process inherited is closed by worker/main.ts alone (see
        // process.test.ts).
        const inherited = inheritableDescriptors();
        const own = Object.entries(view.descriptors).filter(
          ([number]) => !inherited.includes(Number(number)),
        );
        expect(Object.fromEntries(own)).toEqual({
          "0": "/dev/null",
          "1": "socket",
          "2": "socket",
          "3": "/sandbox/work/status.pipe",
        });
        const names = Object.keys(view.env).filter((name) => !proxyVariables.has(name));
        expect(names.sort()).toEqual([
          "HOME",
          "LANG",
          "PATH",
          "PWD",
          "PYTHONDONTWRITEBYTECODE",
          "PYTHONPATH",
          "TMPDIR",
          "_SAM_SANDBOX_LIGHT",
        ]);
      },
    );

    test("shows no file of the host that is not on the list", { tags: "promise-S7" }, async () => {
      const paths = [
        "/",
        "/root",
        "/home",
        "/sandbox",
        "/var/tmp",
        "/etc/shadow",
        "/run",
        "/proc/1/environ",
      ];
      const view = await look(profile, { paths });
      const top = [
        "bin",
        "dev",
        "etc",
        "lib",
        "lib64",
        "proc",
        "sandbox",
        "sbin",
        "tmp",
        "tools",
        "usr",
      ];
      const extra = profile === "permissive" ? ["var", "run"] : [];
      for (const name of view.paths["/"]!)
        expect([...top, ...extra, "lib32", "libx32"]).toContain(name);
      expect(view.paths["/sandbox"]).toEqual(["runner", "work"]);
      expect(view.paths["/etc/shadow"]).toMatch(/FileNotFoundError|PermissionError/);
      expect(view.paths["/root"]).toBe("FileNotFoundError");
      expect(view.paths["/proc/1/environ"]).not.toContain("hidden");
    });

    test(
      "lets nothing be written but the work directory and private temporary directories",
      { tags: "promise-S8" },
      async () => {
        const outside = [
          "/file",
          "/usr/file",
          "/etc/file",
          "/dev/file",
          "/tools/python/file",
          "/sandbox/file",
          "/sandbox/runner/file",
        ];
        const inside = [
          "/sandbox/work/file",
          "/sandbox/work/output/file",
          "/tmp/file",
          "/dev/shm/file",
          "/dev/null",
        ];
        const { paths } = await result<{ paths: Record<string, string> }>(`writes_${profile}`, {
          paths: [...outside, ...inside, "/var/file"],
        });
        for (const path of outside)
          expect(`${path} ${paths[path]}`).toMatch(/OSError|PermissionError/);
        for (const path of inside) expect(`${path} ${paths[path]}`).toBe(`${path} written`);
        expect(paths["/var/file"]).toBe(profile === "permissive" ? "written" : "FileNotFoundError");
      },
    );
  });

  test("has the limits of its profile", { tags: "promise-S15" }, async () => {
    const views = await Promise.all(profiles.map((profile) => look(profile)));
    expect(views.map((view) => view.limits)).toEqual([
      {
        RLIMIT_AS: 512 * MiB,
        RLIMIT_CPU: 60,
        RLIMIT_FSIZE: 64 * MiB,
        RLIMIT_NOFILE: 128,
        RLIMIT_NPROC: 32,
        RLIMIT_CORE: 0,
      },
      {
        RLIMIT_AS: 1024 * MiB,
        RLIMIT_CPU: 300,
        RLIMIT_FSIZE: 256 * MiB,
        RLIMIT_NOFILE: 512,
        RLIMIT_NPROC: 128,
        RLIMIT_CORE: 0,
      },
      {
        RLIMIT_AS: 4096 * MiB,
        RLIMIT_CPU: 600,
        RLIMIT_FSIZE: 1024 * MiB,
        RLIMIT_NOFILE: 1024,
        RLIMIT_NPROC: 512,
        RLIMIT_CORE: 0,
      },
    ]);
    expect(views.map((view) => view.cpus <= 4)).toEqual([true, true, true]);
    expect(views[0]!.cpus).toBe(1);
    expect(views[1]!.cpus).toBeLessThanOrEqual(2);
  });

  test("stops a fork bomb of its own, per sandbox", { tags: "promise-S15" }, async () => {
    const [one, other] = await Promise.all([
      result<{ forked: number }>("forks_restrictive"),
      result<{ forked: number }>("forks_restrictive"),
    ]);
    for (const { forked } of [one, other]) {
      expect(forked).toBeGreaterThan(16);
      expect(forked).toBeLessThan(32);
    }
  });

  test("bounds what fits into its memory-backed directories", { tags: "promise-S15" }, async () => {
    for (const directory of ["/tmp", "/dev/shm"]) {
      const filled = await result<{ megabytes: number; error: string }>("fills_restrictive", {
        path: `${directory}/fill`,
      });
      expect(filled).toEqual({
        megabytes: expect.toSatisfy((n: number) => n >= 60 && n <= 64),
        error: "OSError",
      });
    }
  });

  test(
    "reaches the host's loopback under permissive alone",
    { tags: ["promise-S14", "promise-S34"] },
    async () => {
      await using server = createServer((socket) => socket.end());
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      const { port } = server.address() as { port: number };
      const views = await Promise.all(
        profiles.map((profile) => look(profile, { connect: ["127.0.0.1", port] })),
      );
      expect(views.map((view) => view.connect)).toEqual([
        expect.stringMatching(/Error/),
        expect.stringMatching(/Error/),
        "connected",
      ]);
      for (const tight of views.slice(0, 2)) expect(tight.interfaces).toEqual(["lo"]);
    },
  );

  test("reads /etc under permissive only", { tags: "promise-S7" }, async () => {
    const views = await Promise.all(
      profiles.map((profile) => look(profile, { paths: ["/etc/passwd"] })),
    );
    expect(views.map((view) => view.paths["/etc/passwd"])).toEqual([
      "FileNotFoundError",
      "FileNotFoundError",
      expect.stringContaining("root:"),
    ]);
  });

  test(
    "sees the worker's variables that its manifest entry names, and no others",
    { tags: "promise-S11" },
    async () => {
      const { env } = await result<View>("allowed");
      expect(env["RIG_ALLOWED"]).toBe("shown");
      expect(env).not.toHaveProperty("RIG_UNSET");
      expect(Object.values(env)).not.toContain("hidden");
    },
  );

  test("imports modules that stand beside the tool's", async () => {
    expect(await result("sibling")).toEqual({ greeting: "hello from beside" });
  });

  test(
    "keeps a request from widening: restrictive always tightens, standard lowers nothing, permissive gives nothing",
    { tags: "promise-S21" },
    async () => {
      const limitOf = async (tool: string, profile: string) => {
        const answer = await rig.call(tool, {}, { profile });
        return ((answer as { toolResult?: unknown }).toolResult as View).limits["RLIMIT_NOFILE"];
      };
      expect(await limitOf("looks_around_permissive", "standard")).toBe(1024);
      expect(await limitOf("looks_around_permissive", "restrictive")).toBe(128);
      expect(await limitOf("allowed", "permissive")).toBe(512);
      expect(await limitOf("allowed", "standard")).toBe(512);
    },
  );
});
