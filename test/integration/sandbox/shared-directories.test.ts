/**
 * Directories of the host in a form that sandboxes of another user can mount.
 */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import {
  access,
  appendFile,
  chmod,
  mkdir,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../../../worker/support/clock.ts";
import { SharedDirectories } from "../../../worker/sandbox/shared-directories.ts";
import { newId } from "../../../worker/support/ids.ts";
import { makeFiles } from "./work/many-files.ts";
import { requireRoot, temporaryDirectory } from "./sandbox-host.ts";

const run = promisify(execFile);

/** A user id that owns nothing. */
const foreignUid = 60_003;

/**
 * Shared directories for sandboxes of another user, with the directory that copies are put into.
 */
async function newShared() {
  const base = join(await temporaryDirectory(), "shared");
  let nowMs = 0;
  const shared = new SharedDirectories(base, foreignUid, newId, { monotonicMs: () => nowMs });
  onTestFinished(() => shared[Symbol.asyncDispose]());
  const copies = () => readdir(base).catch(() => []);
  const advance = (ms: number) => void (nowMs += ms);
  return { base, shared, copies, advance };
}

/** For waiting until a copy is shared, which takes two processes to make. */
const copyWait = { timeout: 20_000 };

/** What a directory is shared as for a call that is over at once. */
async function sourceOf(shared: SharedDirectories, directory: string): Promise<string> {
  await using share = await shared.share(directory);
  return share.source;
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

  test("stays as it was for each of many that shared it at once", async () => {
    const tools = await privateTools();
    const { shared } = await newShared();
    const shares = await Promise.all([1, 2, 3, 4].map(() => shared.share(tools)));
    await writeFile(join(tools, "package/module.py"), "VERSION = 2\n");
    await using _later = await shared.share(tools);
    for (const share of shares) {
      expect(await readFile(join(share.source, "package/module.py"), "utf8")).toBe("VERSION = 1\n");
      await share[Symbol.asyncDispose]();
    }
    expect(await exists(shares[0]!.source)).toBe(false);
  });

  test(
    "is shared with all that was written before, also when it was being looked at then",
    { tags: "full" },
    async () => {
      const tools = await privateTools();
      await makeFiles(join(tools, "package"), 500);
      const { shared } = await newShared();
      const module = join(tools, "a-module.py");
      await writeFile(module, "VERSION = start\n");
      await using _first = await shared.share(tools);
      for (let turns = 0; turns < 20; turns++) {
        const before = shared.share(tools);
        for (let turn = 0; turn < turns; turn++) await nextTurn();
        writeFileSync(module, `VERSION = ${turns}\n`);
        const after = await Promise.all([1, 2, 3].map(() => shared.share(tools)));
        expect(new Set(after.map(({ source }) => source)).size).toBe(1);
        for (const share of [...after, await before]) {
          if (share.source === after[0]!.source)
            expect(await readFile(join(share.source, "a-module.py"), "utf8")).toBe(
              `VERSION = ${turns}\n`,
            );
          await share[Symbol.asyncDispose]();
        }
      }
    },
  );

  test(
    "costs many that share it at once little more than one of them",
    { tags: "full" },
    async () => {
      const tools = await privateTools();
      await makeFiles(join(tools, "package"), 10_000);
      const { shared } = await newShared();
      /** CPU time of all threads: how long they wait for a core does not matter. */
      const work = async (callers: number) => {
        const before = process.cpuUsage();
        const sources = Array.from({ length: callers }, () => sourceOf(shared, tools));
        expect(new Set(await Promise.all(sources)).size).toBe(1);
        const { user, system } = process.cpuUsage(before);
        return user + system;
      };
      await work(1);
      const one = Math.max(await work(1), await work(1), await work(1));
      // It is looked at twice; turn by turn it would be 32 times as much.
      expect(await work(32)).toBeLessThan(10 * one);
    },
  );

  test("of very many files is told apart in every one of them", { tags: "full" }, async () => {
    const tools = await privateTools();
    await makeFiles(join(tools, "package"), 300);
    const { shared } = await newShared();
    let last = await sourceOf(shared, tools);
    for (const index of [0, 63, 64, 150, 299]) {
      await writeFile(join(tools, `package/file-${index}`), "x");
      const next = await sourceOf(shared, tools);
      expect(next).not.toBe(last);
      expect(await sourceOf(shared, tools)).toBe(next);
      last = next;
    }
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

describe("a directory that everybody can reach, and that changes", () => {
  const secondMs = 1_000;

  async function publicTools(): Promise<string> {
    const tools = join(await temporaryDirectory(), "tools");
    await mkdir(tools);
    await writeFile(join(tools, "module.py"), "VERSION = 1\n");
    return tools;
  }

  test("is copied for later calls once others cannot read it any more", async (context) => {
    requireRoot(context);
    const tools = await publicTools();
    const { shared, advance } = await newShared();
    expect(await sourceOf(shared, tools)).toBe(tools);
    await writeFile(join(tools, "new.py"), "NEW = True\n", { mode: 0o600 });
    advance(secondMs);
    await vi.waitFor(async () => expect(await sourceOf(shared, tools)).not.toBe(tools), copyWait);
    await using share = await shared.share(tools);
    expect(await readAsAnother(join(share.source, "new.py"))).toBe("NEW = True\n");
    expect(await readAsAnother(join(share.source, "module.py"))).toBe("VERSION = 1\n");
  });

  test("is copied for later calls once others cannot get to it any more", async () => {
    const tools = await publicTools();
    const { shared, advance } = await newShared();
    expect(await sourceOf(shared, tools)).toBe(tools);
    await chmod(dirname(tools), 0o700);
    advance(secondMs);
    await vi.waitFor(async () => expect(await sourceOf(shared, tools)).not.toBe(tools), copyWait);
  });

  test("keeps no call waiting for a look at it", async () => {
    const tools = await publicTools();
    await makeFiles(tools, 1_000);
    const { shared, advance } = await newShared();
    await sourceOf(shared, tools);
    for (let call = 0; call < 10; call++) {
      advance(10 * secondMs);
      // A look takes many turns; what is known is there in the same.
      const first = await Promise.race([sourceOf(shared, tools), nextTurn("a look")]);
      expect(first).toBe(tools);
    }
  });

  test("is looked at again only after a while", async () => {
    const tools = await publicTools();
    const { shared, advance, copies } = await newShared();
    await sourceOf(shared, tools);
    await chmod(join(tools, "module.py"), 0o600);
    advance(secondMs - 1);
    // What is private is looked at by every call: by then a look at the other would be over, too.
    const other = await privateTools();
    for (let call = 0; call < 20; call++) {
      expect(await sourceOf(shared, tools)).toBe(tools);
      await sourceOf(shared, other);
    }
    expect(await copies()).toHaveLength(1);
  });

  test("is shared as it is again once others can read it again, and the copy goes", async () => {
    const tools = await publicTools();
    await chmod(join(tools, "module.py"), 0o600);
    const { shared, copies } = await newShared();
    const copy = await shared.share(tools);
    expect(copy.source).not.toBe(tools);
    await chmod(join(tools, "module.py"), 0o644);
    expect(await sourceOf(shared, tools)).toBe(tools);
    expect(await exists(copy.source)).toBe(true);
    await copy[Symbol.asyncDispose]();
    expect(await copies()).toEqual([]);
  });

  test("is looked at once more later when it could not be looked at", async () => {
    const tools = await publicTools();
    const { shared, advance } = await newShared();
    await sourceOf(shared, tools);
    await rename(tools, `${tools}.away`);
    advance(secondMs);
    expect(await sourceOf(shared, tools)).toBe(tools);
    await chmod(join(`${tools}.away`, "module.py"), 0o600);
    await rename(`${tools}.away`, tools);
    await vi.waitFor(async () => {
      advance(secondMs);
      expect(await sourceOf(shared, tools)).not.toBe(tools);
    }, copyWait);
  });

  test("is refused, not shared as it is, once it is private and cannot be copied", async () => {
    const tools = await publicTools();
    const { base, shared, advance } = await newShared();
    await sourceOf(shared, tools);
    await writeFile(base, "a file where copies would be");
    await chmod(join(tools, "module.py"), 0o600);
    advance(secondMs);
    await vi.waitFor(
      () =>
        expect(shared.share(tools)).rejects.toThrow(
          `cannot copy ${tools} to where sandboxes can read it`,
        ),
      copyWait,
    );
    await rm(base);
    expect(await sourceOf(shared, tools)).not.toBe(tools);
  });
});

describe("a file", () => {
  test("that everybody can get to is shared as it is", async () => {
    const file = join(await temporaryDirectory(), "program");
    await writeFile(file, "");
    await chmod(file, 0o755);
    const { shared } = await newShared();
    expect(await sourceOf(shared, file)).toBe(file);
  });

  test("in a private directory is copied, without what lies beside it", async (context) => {
    requireRoot(context);
    const tools = await privateTools();
    await writeFile(join(tools, "secret.txt"), "");
    const program = join(tools, "program");
    await writeFile(program, "a program\n", { mode: 0o700 });
    const { base, shared, copies } = await newShared();
    await using share = await shared.share(program);
    expect(dirname(share.source)).toBe(base);
    expect(await copies()).toHaveLength(1);
    expect(await readAsAnother(share.source)).toBe("a program\n");
    expect((await stat(share.source)).mode & 0o777).toBe(0o755);
  });
});

describe("any directory", () => {
  test("is shared as it is with sandboxes of the worker's own user", async () => {
    const tools = await privateTools();
    const base = join(await temporaryDirectory(), "shared");
    await using shared = new SharedDirectories(base, undefined, newId, systemClock);
    await using share = await shared.share(tools);
    expect(share.source).toBe(tools);
    expect(await exists(base)).toBe(false);
  });
});
