/**
 * Directories of the host in a form that sandboxes of another user can mount.
 */
import { execFile } from "node:child_process";
import {
  access,
  appendFile,
  chmod,
  mkdir,
  readFile,
  readdir,
  rename,
  rm,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { SharedDirectories } from "../../../worker/sandbox/shared-directories.ts";
import { newId } from "../../../worker/support/ids.ts";
import { requireRoot, temporaryDirectory } from "./sandbox-host.ts";

const run = promisify(execFile);

/** A user id that owns nothing. */
const foreignUid = 60_003;

/** Shared directories for sandboxes of another user, with the directory that copies are put into. */
async function newShared() {
  const base = join(await temporaryDirectory(), "shared");
  const shared = new SharedDirectories(base, foreignUid, newId);
  onTestFinished(() => shared[Symbol.asyncDispose]());
  const copies = () => readdir(base).catch(() => []);
  return { base, shared, copies };
}

/** A directory with a module in it, that nobody but its owner can enter. */
async function privateTools(): Promise<string> {
  const tools = join(await temporaryDirectory(), "tools");
  await mkdir(join(tools, "package"), { recursive: true });
  await writeFile(join(tools, "package/module.py"), "VERSION = 1\n", { mode: 0o600 });
  await chmod(tools, 0o700);
  return tools;
}

/** What another user reads at a path. */
async function readAsAnother(path: string): Promise<string> {
  const identity = { uid: foreignUid, gid: foreignUid, cwd: "/", env: {} };
  const { stdout } = await run("/usr/bin/cat", ["--", path], identity);
  return stdout;
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

describe("a private directory", () => {
  test("is copied to where another user can read it", async (context) => {
    requireRoot(context);
    const tools = await privateTools();
    const { base, shared } = await newShared();
    await expect(readAsAnother(join(tools, "package/module.py"))).rejects.toThrow("denied");
    await using share = await shared.share(tools);
    expect(share.source.startsWith(`${base}/`)).toBe(true);
    expect(await readAsAnother(join(share.source, "package/module.py"))).toBe("VERSION = 1\n");
  });

  test("is copied so under any umask", async (context) => {
    requireRoot(context);
    const umask = process.umask(0o077);
    onTestFinished(() => void process.umask(umask));
    const tools = await privateTools();
    const { base, shared } = await newShared();
    await chmod(dirname(base), 0o755);
    await using share = await shared.share(tools);
    expect(await readAsAnother(join(share.source, "package/module.py"))).toBe("VERSION = 1\n");
  });

  test("is copied once for all who share it unchanged", async () => {
    const tools = await privateTools();
    const { shared, copies } = await newShared();
    const shares = await Promise.all([
      shared.share(tools),
      shared.share(tools),
      shared.share(tools),
    ]);
    expect(new Set(shares.map(({ source }) => source)).size).toBe(1);
    for (const share of shares) await share[Symbol.asyncDispose]();
    // Kept for the next call, though nobody uses it.
    await using again = await shared.share(tools);
    expect(again.source).toBe(shares[0].source);
    expect(await copies()).toHaveLength(1);
  });

  const changes: readonly (readonly [string, (tools: string) => Promise<unknown>])[] = [
    ["a file is written to", (tools) => appendFile(join(tools, "package/module.py"), "# more\n")],
    [
      "a file is written to within the same size and second",
      async (tools) => writeFile(join(tools, "package/module.py"), "VERSION = 2\n"),
    ],
    [
      "a file is replaced by one of the same size and time",
      async (tools) => {
        const path = join(tools, "package/module.py");
        await utimes(path, 1_000, 1_000);
        await writeFile(join(tools, "new"), "VERSION = 3\n");
        await utimes(join(tools, "new"), 1_000, 1_000);
        await rename(join(tools, "new"), path);
      },
    ],
    ["a file appears", (tools) => writeFile(join(tools, "other.py"), "")],
    ["a file goes", (tools) => rm(join(tools, "package/module.py"))],
    ["a file changes its mode", (tools) => chmod(join(tools, "package/module.py"), 0o700)],
    ["a link appears", (tools) => symlink("package", join(tools, "link"))],
  ];

  test.each(changes)(
    "is copied again for the next who shares it when %s",
    async (_name, change) => {
      const tools = await privateTools();
      const { shared } = await newShared();
      await using before = await shared.share(tools);
      await change(tools);
      await using after = await shared.share(tools);
      expect(after.source).not.toBe(before.source);
      const [inCopy, inTools] = await Promise.all(
        [after.source, tools].map(
          async (directory) => (await run("ls", ["-RL", directory])).stdout,
        ),
      );
      expect(inCopy!.replaceAll(after.source, "")).toBe(inTools!.replaceAll(tools, ""));
    },
  );

  test("stays as it was for who uses it, and that copy goes when the last of them is done", async () => {
    const tools = await privateTools();
    const { shared, copies } = await newShared();
    const first = await shared.share(tools);
    const second = await shared.share(tools);
    await writeFile(join(tools, "package/module.py"), "VERSION = 2\n");
    await using third = await shared.share(tools);
    const module = (source: string) => readFile(join(source, "package/module.py"), "utf8");
    expect(await module(first.source)).toBe("VERSION = 1\n");
    expect(await module(third.source)).toBe("VERSION = 2\n");
    await first[Symbol.asyncDispose]();
    expect(await module(second.source)).toBe("VERSION = 1\n");
    await second[Symbol.asyncDispose]();
    expect(await exists(second.source)).toBe(false);
    expect(await copies()).toHaveLength(1);
  });

  test("whose old copy nobody uses any more leaves no old copy", async () => {
    const tools = await privateTools();
    const { shared, copies } = await newShared();
    for (let version = 0; version < 5; version++) {
      await writeFile(join(tools, "package/module.py"), `VERSION = ${version}\n`);
      await using _share = await shared.share(tools);
    }
    expect(await copies()).toHaveLength(1);
  });

  test("is copied by owner and mode so that no sandbox can change the copy", async (context) => {
    requireRoot(context);
    const tools = await privateTools();
    await chmod(join(tools, "package/module.py"), 0o4777);
    const { shared } = await newShared();
    await using share = await shared.share(tools);
    const path = join(share.source, "package/module.py");
    const identity = { uid: foreignUid, gid: foreignUid, cwd: "/", env: {} };
    await expect(run("/usr/bin/sh", ["-c", 'echo > "$0"', path], identity)).rejects.toThrow(
      "denied",
    );
    const { stdout } = await run("stat", ["-c", "%a", path, share.source]);
    expect(stdout).toBe("755\n755\n");
  });

  test("behind a link is copied, not the link", async (context) => {
    requireRoot(context);
    const tools = await privateTools();
    const link = join(await temporaryDirectory(), "tools");
    await symlink(tools, link);
    const { shared } = await newShared();
    await using share = await shared.share(link);
    expect(await readAsAnother(join(share.source, "package/module.py"))).toBe("VERSION = 1\n");
    await writeFile(join(tools, "package/module.py"), "VERSION = 2\n");
    await using changed = await shared.share(link);
    expect(await readAsAnother(join(changed.source, "package/module.py"))).toBe("VERSION = 2\n");
  });

  test("behind a link on the way to it is copied", async (context) => {
    requireRoot(context);
    const barrier = await temporaryDirectory();
    await mkdir(join(barrier, "tools"));
    await writeFile(join(barrier, "tools/module.py"), "VERSION = 1\n");
    await chmod(barrier, 0o700);
    const way = join(await temporaryDirectory(), "way");
    await symlink(barrier, way);
    const { shared } = await newShared();
    await using share = await shared.share(join(way, "tools"));
    expect(await readAsAnother(join(share.source, "module.py"))).toBe("VERSION = 1\n");
  });

  test("that cannot be copied is refused, and nothing is left of the attempt", async () => {
    const { shared, copies } = await newShared();
    const missing = join(await temporaryDirectory(), "missing");
    await expect(shared.share(missing)).rejects.toThrow(
      expect.objectContaining({ name: "SandboxError", message: `cannot share ${missing}` }),
    );
    expect(await copies()).toEqual([]);
    // The next attempt is one of its own.
    await mkdir(missing, { mode: 0o700 });
    await using share = await shared.share(missing);
    expect(await readdir(share.source)).toEqual([]);
  });

  test("is copied no longer once the copies have been given up", async () => {
    const tools = await privateTools();
    const { base, shared } = await newShared();
    await shared.share(tools);
    await shared[Symbol.asyncDispose]();
    expect(await exists(base)).toBe(false);
  });
});

describe("a directory that everybody can reach", () => {
  test("is shared as it is", async (context) => {
    requireRoot(context);
    const tools = await temporaryDirectory();
    await writeFile(join(tools, "module.py"), "VERSION = 1\n");
    const { shared, copies } = await newShared();
    await using share = await shared.share(tools);
    expect(share.source).toBe(tools);
    expect(await copies()).toEqual([]);
    expect(await readAsAnother(join(share.source, "module.py"))).toBe("VERSION = 1\n");
  });

  test.each([
    ["a file in it", "module.py", 0o600],
    ["a directory in it", "package", 0o700],
    ["a directory in it that can be listed only", "package", 0o744],
  ])("but with %s that others cannot read is copied", async (_name, name, mode) => {
    const tools = await temporaryDirectory();
    await writeFile(join(tools, "module.py"), "VERSION = 1\n");
    await mkdir(join(tools, "package"));
    await chmod(join(tools, name), mode);
    const { shared } = await newShared();
    await using share = await shared.share(tools);
    expect(share.source).not.toBe(tools);
  });

  test("but behind a directory that others cannot pass is copied", async () => {
    const barrier = await temporaryDirectory();
    await mkdir(join(barrier, "a/tools"), { recursive: true });
    await chmod(barrier, 0o750);
    const { shared } = await newShared();
    await using share = await shared.share(join(barrier, "a/tools"));
    expect(share.source).not.toBe(join(barrier, "a/tools"));
  });
});

describe("any directory", () => {
  test("is shared as it is with sandboxes of the worker's own user", async () => {
    const tools = await privateTools();
    const base = join(await temporaryDirectory(), "shared");
    await using shared = new SharedDirectories(base, undefined, newId);
    await using share = await shared.share(tools);
    expect(share.source).toBe(tools);
    expect(await exists(base)).toBe(false);
  });
});
