/**
 * Trees removed, whatever their size, without keeping this process from its work. What a tool makes
 * of a tree is tried in work-dirs.test.ts.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { access, chown, mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  TreeRemover,
  maxEntriesForNode,
  maxRemovalProcesses,
} from "../../../../worker/sandbox/work/tree-remover.ts";
import { Semaphore } from "../../../../worker/support/semaphore.ts";
import { makeFiles } from "./many-files.ts";
import { requireRoot, sandboxUid, temporaryDirectory } from "../sandbox-host.ts";

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Removes trees, and tells how many processes it took at most at a time. */
async function processesFor(trees: readonly string[], remover: TreeRemover): Promise<number> {
  let most = 0;
  const acquire = Reflect.get(Semaphore.prototype, "acquire");
  const spy = vi.spyOn(Semaphore.prototype, "acquire").mockImplementation(async function (
    this: Semaphore,
    signal,
  ) {
    const lease = await acquire.call(this, signal);
    most = Math.max(most, this.inUse);
    return lease;
  });
  onTestFinished(() => spy.mockRestore());
  await Promise.all(trees.map((tree) => remover.remove(tree)));
  return most;
}

/**
 * Makes directories, keeps them open, and says what it can make in each of them after it was told
 * to.
 */
const holding = `
import errno, os, sys
held = []
for name in ("one", "one/two", "one/two/three", "closed", "other"):
    path = os.path.join(sys.argv[1], name)
    os.mkdir(path)
    os.chmod(path, 0 if name == "closed" else 0o777)
    held.append(os.open(path, os.O_PATH))
print("holds", flush=True)
sys.stdin.readline()
for directory in held:
    try:
        os.mkdir("more", dir_fd=directory)
        print("made")
    except OSError as error:
        print(errno.errorcode[error.errno])
`;

/** Exchanges two entries of a directory, over and over. See rename(2), RENAME_EXCHANGE. */
const exchanging = `
import ctypes, os, sys
rename = ctypes.CDLL(None).renameat2
directory = os.open(sys.argv[1], os.O_RDONLY)
one, other = (name.encode() for name in sys.argv[2:])
print(flush=True)
while True:
    rename(directory, one, directory, other, 2)`;

/**
 * A process that exchanges two entries of a directory until it is disposed, by a descriptor as a
 * tool may have sent it.
 */
async function exchange(directory: string, one: string, other: string): Promise<AsyncDisposable> {
  const child = spawn("python3", ["-I", "-c", exchanging, directory, one, other]);
  await once(child.stdout, "data");
  return {
    async [Symbol.asyncDispose]() {
      const exit = once(child, "exit");
      child.kill("SIGKILL");
      await exit;
    },
  };
}

function startHolder(directory: string) {
  const child = spawn("/usr/bin/python3", ["-I", "-c", holding, directory], {
    uid: sandboxUid,
    gid: sandboxUid,
  });
  const exited = once(child, "exit");
  return {
    child,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

/** Trees beside each other, each with so many files. */
async function makeTrees(count: number, files: number): Promise<string[]> {
  const parent = await temporaryDirectory();
  const trees = Array.from({ length: count }, (_, index) => join(parent, `tree-${index}`));
  await Promise.all(
    trees.map(async (tree) => {
      await mkdir(tree);
      await makeFiles(tree, files);
    }),
  );
  return trees;
}

describe("trees", () => {
  test("that are large are removed in a few processes at a time", { tags: "full" }, async () => {
    const trees = await makeTrees(3 * maxRemovalProcesses, 5_000);
    const most = await processesFor(trees, new TreeRemover());
    expect(most).toBe(maxRemovalProcesses);
    for (const tree of trees) expect(await exists(tree)).toBe(false);
  });

  test("that are small do not wait for large ones", async () => {
    const processes = new Semaphore({ capacity: 1, maxWaiting: 1 });
    const place = await processes.acquire(new AbortController().signal);
    const remover = new TreeRemover(undefined, processes);
    const [large] = await makeTrees(1, 2 * maxEntriesForNode);
    const [small] = await makeTrees(1, maxEntriesForNode);
    const removal = remover.remove(large!);
    await remover.remove(small!);
    expect(await exists(small!)).toBe(false);
    expect(await exists(large!)).toBe(true);
    place[Symbol.dispose]();
    await removal;
    expect(await exists(large!)).toBe(false);
  });

  test("are removed where they are, and nothing that a link in them leads to", async () => {
    const elsewhere = await temporaryDirectory();
    await writeFile(join(elsewhere, "witness"), "untouched");
    for (const files of [0, 2 * maxEntriesForNode]) {
      const [tree] = await makeTrees(1, files);
      await symlink(elsewhere, join(tree!, "link"));
      await new TreeRemover().remove(tree!);
      expect(await exists(tree!)).toBe(false);
    }
    expect(await readdir(elsewhere)).toEqual(["witness"]);
  });

  test.each([
    ["small", maxEntriesForNode / 2],
    ["large", 20 * maxEntriesForNode],
  ])(
    "that are %s lose nothing beside them while somebody exchanges a directory for a link",
    { tags: ["full", "promise-E7"] },
    async (_size, files) => {
      const elsewhere = await temporaryDirectory();
      await makeFiles(elsewhere, files);
      for (let attempt = 0; attempt < 12; attempt++) {
        const [tree] = await makeTrees(1, 0);
        await mkdir(join(tree!, "directory"));
        await makeFiles(join(tree!, "directory"), files);
        await symlink(elsewhere, join(dirname(tree!), "link"));
        await using _exchanging = await exchange(tree!, "directory", "../link");
        await new TreeRemover().remove(tree!).catch(() => undefined);
      }
      expect(await readdir(elsewhere)).toHaveLength(files);
    },
  );

  test(
    "that somebody holds open are closed to him before they are removed at another attempt",
    { tags: ["full", "promise-E7"] },
    async (context) => {
      requireRoot(context);
      const tree = await temporaryDirectory();
      await makeFiles(tree, 2 * maxEntriesForNode);
      await chown(tree, sandboxUid!, sandboxUid!);
      await using holder = startHolder(tree);
      await once(holder.child.stdout, "data");
      // rm(1) refuses to remove that.
      await expect(new TreeRemover(sandboxUid).remove(`${tree}/.`)).rejects.toThrow("rm ended");
      holder.child.stdin.end("try\n");
      const said = await text(holder.child.stdout);
      expect(said.trim().split("\n")).toEqual(Array(5).fill("EACCES"));
      // However deep they were.
      const left = await readdir(tree, { withFileTypes: true });
      const directories = left.filter((entry) => entry.isDirectory());
      expect(directories).toHaveLength(5);
      for (const { name } of directories) expect(await readdir(join(tree, name))).toEqual([]);
    },
  );

  test("that are not there are removed already", async () => {
    const parent = await temporaryDirectory();
    await new TreeRemover().remove(join(parent, "missing"));
    expect(await readdir(parent)).toEqual([]);
  });

  test("that cannot be removed are told with the reason", { tags: "full" }, async () => {
    const [tree] = await makeTrees(1, 2 * maxEntriesForNode);
    // rm(1) refuses such a name.
    await expect(new TreeRemover().remove(`${tree!}/.`)).rejects.toThrow(
      `cannot remove ${tree!}/.: /usr/bin/rm ended with 1: /usr/bin/rm: refusing to remove`,
    );
  });
});
