/**
 * Files without a name and memory that is shared, in real processes.
 */
import { deviceName } from "../../../../worker/sandbox/proc/device-name.ts";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, statSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { HeldFilesSearch } from "../../../../worker/sandbox/accounting/open-files.ts";
import { MappingsSearch, looksPerSearch } from "../../../../worker/sandbox/accounting/mappings.ts";

const MiB = 1024 * 1024;

const placeOf = (pid: number) => ({ place: `/proc/${pid}` });

/**
 * Where the kernel shows the sizes of mapped files: to who may look at every process of the host.
 */
const seesSizes = (() => {
  const [range] = readdirSync("/proc/self/map_files");
  try {
    return statSync(`/proc/self/map_files/${range}`).isFile();
  } catch {
    return false;
  }
})();

/** A Python process in a directory of its own that has done something and goes on. */
async function startPython(script: string) {
  const directory = await mkdtemp(join(tmpdir(), "str-held-"));
  const child = spawn(
    "/usr/bin/python3",
    ["-c", `${prelude}${script}\nprint("done", flush=True)\nsys.stdin.read()`],
    { cwd: directory, stdio: ["pipe", "pipe", "inherit"] },
  );
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await rm(directory, { recursive: true });
  });
  await once(child.stdout, "data");
  return { processes: [placeOf(child.pid!)], device: statSync(directory).dev, child };
}

/** Mebibytes of the files that a search finds there. */
async function heldBy(script: string) {
  const { processes, device } = await startPython(script);
  using mappings = searched(device, processes);
  mappings.goOn(processes, -Infinity);
  const search = new HeldFilesSearch(device);
  search.goOn(processes, mappings.files, Infinity);
  const [whole] = search.uses;
  return [...whole!.files.values()].map((bytes) => Math.floor(bytes / MiB));
}

type Places = readonly ReturnType<typeof placeOf>[];

/** Looks until another search has begun and ended. */
function searchThrough(mappings: MappingsSearch, processes: Places): void {
  for (let look = 0; look < looksPerSearch; look++) mappings.goOn(processes, Infinity);
}

/** A search of mappings that was once through everything. */
function searched(device: number, processes: Places): MappingsSearch {
  const mappings = new MappingsSearch(device);
  mappings.goOn(processes, Infinity);
  return mappings;
}

const prelude = `
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
def share(mebibytes):
    return libc.mmap(None, mebibytes << 20, 3, 0x21, -1, 0)
def new_file(name, mebibytes):
    file = os.open(name, os.O_RDWR | os.O_CREAT)
    os.write(file, b"x" * (mebibytes << 20))
    return file
`;

describe("a file that a process holds without a name", () => {
  test("counts by what it takes while it is open, once for all descriptors", async () => {
    const script = `
file = new_file("file", 3)
os.dup(file)
os.unlink("file")
named = new_file("named", 5)`;
    expect(await heldBy(script)).toEqual([3]);
  });

  test("counts by what it takes when it is closed, where the kernel tells, else up to the end of what is mapped", async () => {
    const script = `
file = new_file("file", 4)
libc.mmap(None, 1 << 20, 1, 1, file, 2 << 20)
os.close(file)
os.unlink("file")
named = new_file("named", 5)
libc.mmap(None, 1 << 20, 1, 1, named, 0)`;
    expect(await heldBy(script)).toEqual([seesSizes ? 4 : 3]);
  });

  test("counts by what it takes when it is open and mapped", async () => {
    const script = `
file = new_file("file", 4)
libc.mmap(None, 1 << 20, 1, 1, file, 0)
os.unlink("file")`;
    expect(await heldBy(script)).toEqual([4]);
  });

  test("counts nowhere on another device", async () => {
    const script = `
file = new_file("/dev/shm/str-held-files-test", 1)
os.unlink("/dev/shm/str-held-files-test")`;
    expect(await heldBy(script)).toEqual([]);
  });
});

describe("the search for them", () => {
  test("pauses between descriptors, and finds nothing where no process is", () => {
    const search = new HeldFilesSearch(statSync(".").dev);
    const nothing = new Map();
    search.goOn([placeOf(process.pid)], nothing, -Infinity);
    expect(search.uses.map(({ files }) => files.size)).toEqual([0, 0]);
    search.goOn([placeOf(2 ** 22 + 1)], nothing, Infinity);
    search.goOn([placeOf(2 ** 22 + 1)], nothing, Infinity);
    expect(search.uses.map(({ files }) => files.size)).toEqual([0, 0]);
  });
});

describe("memory that processes share", () => {
  const shown = `
shared = share(8)
ctypes.memset(shared, 1, 4 << 20)
libc.madvise(ctypes.c_void_p(shared), 8 << 20, 4)`;

  test("counts by what it takes, where the kernel tells, else as large as it is mapped, though no page is touched", async () => {
    const { processes, device } = await startPython(shown);
    using mappings = searched(device, processes);
    expect(mappings.sharedBytes / MiB).toBe(seesSizes ? 4 : 8);
  });

  test("counts once for all who map it", async () => {
    const { processes, device } = await startPython(shown);
    using mappings = searched(device, [...processes, ...processes]);
    expect(mappings.sharedBytes / MiB).toBe(seesSizes ? 4 : 8);
  });

  test("counts as large as it was seen once when most of it is unmapped", async () => {
    const { processes, device, child } = await startPython(`
shared = share(8)
ctypes.memset(shared, 1, 8 << 20)
print("mapped", flush=True)
sys.stdin.readline()
libc.munmap(shared + 4096, (8 << 20) - 4096)`);
    using mappings = searched(device, processes);
    child.stdin.write("go\n");
    await once(child.stdout, "data");
    searchThrough(mappings, processes);
    expect(mappings.sharedBytes / MiB).toBe(8);
  });

  test("is certain when two searches have found it", async () => {
    const { processes, device, child } = await startPython(shown);
    using mappings = searched(device, processes);
    expect(mappings.lastingSharedBytes).toBe(0);
    searchThrough(mappings, processes);
    expect(mappings.lastingSharedBytes).toBe(mappings.sharedBytes);
    child.kill("SIGKILL");
    await once(child, "exit");
    searchThrough(mappings, processes);
    expect(mappings.lastingSharedBytes).toBe(0);
    expect(mappings.sharedBytes).toBeGreaterThan(0);
    searchThrough(mappings, processes);
    expect(mappings.sharedBytes).toBe(0);
  });

  test("is searched for with pauses, however many mappings there are", async () => {
    const { processes, device } = await startPython(`
pieces = [libc.mmap(None, 4096, 1 + 2 * (number % 2), 0x22, -1, 0) for number in range(20_000)]
${shown}`);
    using mappings = new MappingsSearch(device);
    mappings.goOn(processes, -Infinity);
    expect(mappings.isUnderWay).toBe(true);
    let pieces = 1;
    for (; mappings.isUnderWay; pieces++) mappings.goOn(processes, -Infinity);
    expect(mappings.sharedBytes / MiB).toBe(seesSizes ? 4 : 8);
    // The kernel tells of some dozens at once.
    expect(pieces).toBeGreaterThan(20_000 / 200);
  });
});

describe("a device", () => {
  test("has the name that the kernel gives it in lists of mappings", async () => {
    const maps = await readFile("/proc/self/maps", "utf8");
    const [, device, path] = /^\S+ \S+ \S+ (\S+) \d+ +(\/\S+)$/m.exec(maps)!;
    expect(deviceName(statSync(path!).dev)).toBe(device);
  });

  test.each([
    [0, "00:00"],
    [0xfe00, "fe:00"],
    [0x1b, "00:1b"],
    // As makedev(3) makes them.
    [0x0010_0300, "03:100"],
    [0xffff_ffff, "fff:fffff"],
  ])("%d is %s", (device, name) => {
    expect(deviceName(device)).toBe(name);
  });
});
