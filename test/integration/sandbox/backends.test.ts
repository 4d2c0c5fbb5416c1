/**
 * Which backend makes a sandbox, and which profiles get none that isolates nothing.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, describe, expect, onTestFinished, test } from "vitest";
import { type BackendsOptions, openBackends } from "../../../worker/sandbox/backends.ts";
import {
  type Profile,
  builtInProfiles,
  restrictiveProfile,
} from "../../../worker/sandbox/profile.ts";
import { workDirInside } from "../../../worker/sandbox/sandbox.ts";
import { insidePaths } from "../../../worker/runners/inside-paths.ts";
import {
  backendOptions,
  never,
  openBackend,
  request,
  runScript,
  temporaryDirectory,
} from "./sandbox-host.ts";

const standard = builtInProfiles.get("standard")!;
const debug: Profile = { ...standard, name: "debug", backend: "host" };
const tightButOpen: Profile = { ...restrictiveProfile, backend: "host" };

/** Settings of backends that no profile here has. */
const containerd = { ctrBin: "/no/such/ctr", address: "/no/such/socket" };
const otherBackends = {
  gvisor: { runscBin: "/no/such/runsc" },
  containerd,
  kata: { ...containerd, runtime: "none" },
  docker: { dockerSocket: "/no/such/socket" },
};

function options(
  workBase: string,
  profiles: readonly Profile[],
  changes: Partial<BackendsOptions> = {},
): BackendsOptions {
  return {
    profiles: new Map(profiles.map((profile) => [profile.name, profile])),
    allowUnsafe: true,
    settings: { ...otherBackends, bubblewrap: { bwrapBin: "/usr/bin/bwrap" } },
    ...backendOptions(workBase),
    ...changes,
  };
}

async function open(profiles: readonly Profile[], changes: Partial<BackendsOptions> = {}) {
  const base = await temporaryDirectory();
  const backends = await openBackends(options(join(base, "work"), profiles, changes));
  onTestFinished(() => backends[Symbol.asyncDispose]());
  return backends;
}

/** Skips a test where bubblewrap cannot make sandboxes. */
async function requireBubblewrap(context: TestContext): Promise<void> {
  await using _backend = await openBackend(context);
}

describe("the backends of a worker", () => {
  test("make each sandbox by the technology that its profile asks for", async (context) => {
    await requireBubblewrap(context);
    const backends = await open([...builtInProfiles.values(), debug]);
    const seen = [];
    for (const profile of [standard, debug]) {
      await using sandbox = await backends.acquire(request({ profile }), never);
      const { stdout } = await runScript(sandbox, "pwd -P");
      const place = stdout.text.trim() === workDirInside ? "inside" : "outside";
      seen.push([sandbox.backend, place, backends.facts(profile).unenforced.includes("isolation")]);
    }
    expect(seen).toEqual([
      ["bubblewrap", "inside", false],
      ["host", "outside", true],
    ]);
  });

  test("share what every sandbox can mount, and have one directory that each reaches", async (context) => {
    await requireBubblewrap(context);
    const backends = await open([...builtInProfiles.values(), debug]);
    await using shared = await backends.share(import.meta.filename);
    const mounts = [{ source: shared.source, target: `${insidePaths.nodeTools}/it.ts` }];
    for (const profile of [standard, debug]) {
      await using sandbox = await backends.acquire(request({ profile, mounts }), never);
      const path = sandbox.locate(`${insidePaths.nodeTools}/it.ts`);
      const { stdout } = await runScript(sandbox, `head -n 2 '${path}'`);
      expect(stdout.text).toContain("Which backend makes a sandbox");
    }
  });

  test("are open only where a profile asks for them", async () => {
    const backends = await open([debug], {
      settings: { ...otherBackends, bubblewrap: { bwrapBin: "/no/such/bwrap" } },
    });
    const acquiring = backends.acquire(request({ profile: standard }), never);
    await expect(acquiring).rejects.toThrow("no profile of this worker has the backend bubblewrap");
  });

  test("leave nothing when they are closed", { tags: "full" }, async (context) => {
    await requireBubblewrap(context);
    const base = await temporaryDirectory();
    const backends = await openBackends(options(base, [standard, debug]));
    expect(await readdir(base)).toHaveLength(2);
    await backends[Symbol.asyncDispose]();
    expect(await readdir(base)).toEqual([]);
  });

  test("leave nothing when one of them does not open", async () => {
    const base = await temporaryDirectory();
    const opening = openBackends(
      options(base, [debug, standard], {
        settings: { ...otherBackends, bubblewrap: { bwrapBin: "/usr/bin/false" } },
      }),
    );
    await expect(opening).rejects.toThrow(expect.objectContaining({ name: "SandboxError" }));
    expect(await readdir(base)).toEqual([]);
  });
});

describe("a profile that asks for the backend host", () => {
  test(
    "is refused where that is not allowed, before anything is opened",
    { tags: "promise-S1" },
    async () => {
      const base = await temporaryDirectory();
      const opening = openBackends(options(base, [standard, debug], { allowUnsafe: false }));
      await expect(opening).rejects.toMatchObject({
        setting: "allowUnsafe",
        message: expect.stringContaining("the backend host of the profile debug isolates nothing"),
      });
      expect(await readdir(base)).toEqual([]);
    },
  );

  test("is refused when it comes with a call, where no other one was allowed", async (context) => {
    await requireBubblewrap(context);
    const backends = await open([standard]);
    const acquiring = backends.acquire(request({ profile: debug }), never);
    await expect(acquiring).rejects.toMatchObject({ setting: "allowUnsafe" });
  });

  test("is never restrictive, whatever is allowed", { tags: "promise-S1" }, async () => {
    const base = await temporaryDirectory();
    const refusal = "the profile restrictive is never run without isolation";
    await expect(openBackends(options(base, [tightButOpen]))).rejects.toThrow(refusal);
    const backends = await open([debug]);
    const acquiring = backends.acquire(request({ profile: tightButOpen }), never);
    await expect(acquiring).rejects.toThrow(refusal);
  });
});
