/**
 * What of the host tools may have: nothing but what the operator allows, wherever links lead.
 */
import { chmod, mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  HostAccess,
  type HostAccessOptions,
  type HostParts,
} from "../../../worker/sandbox/host-access.ts";

/** What callers are told: which kind of part, and never a path. */
const publicReasons = /^one of its (?:mounts|devices) is (?:not|where) [\w ]+$/;

/** `allowed/` with `models/big`, and `secret/` beside it. */
async function newHost(changes: Partial<HostAccessOptions> = {}) {
  const base = await realpath(await mkdtemp("/var/tmp/str-access-"));
  onTestFinished(() => rm(base, { recursive: true }));
  await chmod(base, 0o755);
  await mkdir(join(base, "allowed/models"), { recursive: true });
  await mkdir(join(base, "secret"));
  await writeFile(join(base, "allowed/models/big"), "");
  await writeFile(join(base, "secret/key"), "");
  const access = new HostAccess({
    allowedMounts: [join(base, "allowed")],
    allowedDevices: ["/dev/null"],
    isForeign: false,
    ...changes,
  });
  const at = (path: string): string => join(base, path);
  /** Why, in the operator's words; the callers' name no path. */
  const reasonOf = async (parts: HostParts): Promise<string | undefined> => {
    const refusal = await access.refuse(parts);
    if (refusal !== undefined) expect(refusal.publicReason).toMatch(publicReasons);
    return refusal?.reason;
  };
  const refuse = (path: string) =>
    reasonOf({ mounts: [{ source: path, target: "/data" }], devices: [] });
  const grantMount = async (path: string) => {
    const { mounts } = await access.grant({
      mounts: [{ source: path, target: "/data" }],
      devices: [],
    });
    return mounts[0]?.source;
  };
  return { access, at, refuse, reasonOf, grantMount };
}

describe("a mount", () => {
  test("is granted at and below what is allowed, file or directory", async () => {
    const { at, grantMount } = await newHost();
    for (const path of ["allowed", "allowed/models", "allowed/models/big"])
      expect(await grantMount(at(path))).toBe(at(path));
  });

  test("is refused elsewhere, above, and beside what begins with the same name", async () => {
    const { at, refuse } = await newHost();
    await mkdir(at("allowed-too"));
    for (const path of [at("secret"), at("secret/key"), at("."), "/", at("allowed-too")]) {
      const real = await realpath(path);
      expect(await refuse(real)).toBe(`${real} is not allowed by SANDBOX_ALLOWED_MOUNTS`);
    }
  });

  test(
    "is what a link leads to, and refused when that is not allowed",
    { tags: "promise-S23" },
    async () => {
      const { at, refuse, grantMount } = await newHost();
      await symlink("models/big", at("allowed/inside"));
      await symlink(at("secret"), at("allowed/outside"));
      expect(await grantMount(at("allowed/inside"))).toBe(at("allowed/models/big"));
      expect(await refuse(at("allowed/outside"))).toBe(
        `${at("allowed/outside")} is a link to ${at("secret")}, which is not allowed by SANDBOX_ALLOWED_MOUNTS`,
      );
      expect(await refuse(at("allowed/outside/key"))).toContain("is not allowed by");
      expect(await refuse(`${at("allowed")}/../secret`)).toContain("is not allowed by");
    },
  );

  test("is looked at anew each time: a link that was exchanged leads nowhere else", async () => {
    const { at, grantMount } = await newHost();
    await symlink(at("allowed/models"), at("allowed/current"));
    expect(await grantMount(at("allowed/current"))).toBe(at("allowed/models"));
    await symlink(at("secret"), at("allowed/next"));
    await rename(at("allowed/next"), at("allowed/current"));
    await expect(grantMount(at("allowed/current"))).rejects.toMatchObject({
      name: "NotGrantedError",
    });
  });

  test("may be allowed by the name of a link", async () => {
    const base = await newHost();
    await symlink(base.at("allowed"), base.at("link"));
    const { access } = await newHost({ allowedMounts: [base.at("link"), base.at("missing")] });
    const mounts = [{ source: base.at("allowed/models"), target: "/data" }];
    expect(await access.refuse({ mounts, devices: [] })).toBeUndefined();
  });

  test("is anything where / is allowed", async () => {
    const { at, access } = await newHost({ allowedMounts: ["/"] });
    const mounts = [{ source: at("secret"), target: "/data" }];
    expect(await access.refuse({ mounts, devices: [] })).toBeUndefined();
  });

  test("of what is not there is refused", async () => {
    const { at, refuse } = await newHost();
    expect(await refuse(at("allowed/missing"))).toBe(`${at("allowed/missing")} is not there`);
  });

  test("of a socket or a device is refused: read-only does not keep anybody from using them", async () => {
    const { at, refuse } = await newHost();
    const server = createServer();
    server.listen(at("allowed/socket"));
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const problem = `${at("allowed/socket")} is not a regular file or a directory`;
    expect(await refuse(at("allowed/socket"))).toBe(problem);
    const { reasonOf } = await newHost({ allowedMounts: ["/dev"] });
    const mounts = [{ source: "/dev/null", target: "/data" }];
    expect(await reasonOf({ mounts, devices: [] })).toContain("is not a regular file");
  });

  test("that the sandboxes' own user cannot get to is refused with the directory in the way", async () => {
    const { at, refuse, access } = await newHost({ isForeign: true });
    await chmod(at("allowed/models"), 0o700);
    expect(await refuse(at("allowed/models/big"))).toBe(
      `${at("allowed/models/big")} is below ${at("allowed/models")}, which SANDBOX_UID cannot pass`,
    );
    const mounts = [{ source: at("allowed"), target: "/data" }];
    expect(await access.refuse({ mounts, devices: [] })).toBeUndefined();
  });
});

describe("a device", () => {
  test("is granted by its path when it is allowed", async () => {
    const { access } = await newHost();
    expect(await access.grant({ mounts: [], devices: ["/dev/null"] })).toEqual({
      mounts: [],
      devices: [{ source: "/dev/null", path: "/dev/null" }],
    });
  });

  test("is refused when it is not, and when what is allowed is no character device", async () => {
    const { reasonOf, at } = await newHost();
    const refuse = (path: string) => reasonOf({ mounts: [], devices: [path] });
    expect(await refuse("/dev/zero")).toBe("/dev/zero is not allowed by SANDBOX_ALLOWED_DEVICES");
    expect(await refuse("/dev/no-such-device")).toBe("/dev/no-such-device is not there");
    const wide = await newHost({ allowedDevices: [at("."), "/dev"] });
    const problem = await wide.reasonOf({ mounts: [], devices: [at("secret/key")] });
    expect(problem).toBe(`${at("secret/key")} is not a character device`);
  });

  test("is not what is allowed as a mount", async () => {
    const { reasonOf } = await newHost({ allowedMounts: ["/dev"], allowedDevices: [] });
    expect(await reasonOf({ mounts: [], devices: ["/dev/null"] })).toBe(
      "/dev/null is not allowed by SANDBOX_ALLOWED_DEVICES",
    );
  });
});
