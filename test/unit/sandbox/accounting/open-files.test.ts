/**
 * Open deleted files and shared memory of real processes.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  OpenFilesSearch,
  searchesPerMappings,
} from "../../../../worker/sandbox/accounting/open-files.ts";
import { deviceName } from "../../../../worker/sandbox/proc/files.ts";

const MiB = 1024 * 1024;

const placeOf = (pid: number) => ({ place: `/proc/${pid}` });

/** A Python process in a directory of its own that has done something and goes on. */
async function startPython(script: string) {
  const directory = await mkdtemp(join(tmpdir(), "str-open-files-"));
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

type Places = readonly ReturnType<typeof placeOf>[];

/** A search that has found all there is. */
function searched(device: number, processes: Places): OpenFilesSearch {
  const search = new OpenFilesSearch(device);
  onTestFinished(() => search[Symbol.dispose]());
  search.goOn(processes, Infinity);
  return search;
}

/** Searches until it has read the lists of mappings again. */
function searchMappings(search: OpenFilesSearch, processes: Places): void {
  for (let searches = 0; searches < searchesPerMappings; searches++)
    search.goOn(processes, Infinity);
}

/** Mebibytes of the deleted files that a search finds there. */
async function deletedBy(script: string) {
  const { processes, device } = await startPython(script);
  const [whole] = searched(device, processes).uses;
  return [...whole.deletedFiles.values()].map((bytes) => Math.floor(bytes / MiB));
}

/** Mebibytes of shared memory that it finds. */
const sharedIn = (search: OpenFilesSearch): number => search.uses[0].mapped.sharedBytes / MiB;

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

describe("a deleted file", () => {
  test("counts by its blocks while it is open, once for all descriptors", async () => {
    const script = `
file = new_file("file", 3)
os.dup(file)
os.unlink("file")
named = new_file("named", 5)`;
    expect(await deletedBy(script)).toEqual([3]);
  });

  test("counts up to the end of its mapping when it is closed", async () => {
    const script = `
file = new_file("file", 4)
libc.mmap(None, 1 << 20, 1, 1, file, 2 << 20)
os.close(file)
os.unlink("file")
named = new_file("named", 5)
libc.mmap(None, 1 << 20, 1, 1, named, 0)`;
    expect(await deletedBy(script)).toEqual([3]);
  });

  test("counts by its blocks when it is open and mapped", async () => {
    const script = `
file = new_file("file", 4)
libc.mmap(None, 1 << 20, 1, 1, file, 0)
os.unlink("file")`;
    expect(await deletedBy(script)).toEqual([4]);
  });

  test("does not count on another device", async () => {
    const script = `
file = new_file("/dev/shm/str-open-files-test", 1)
os.unlink("/dev/shm/str-open-files-test")`;
    expect(await deletedBy(script)).toEqual([]);
  });
});

describe("the search for them", () => {
  test("pauses between descriptors, and finds nothing where no process is", () => {
    const search = new OpenFilesSearch(statSync(".").dev);
    onTestFinished(() => search[Symbol.dispose]());
    search.goOn([placeOf(process.pid)], -Infinity);
    expect(search.uses.map(({ deletedFiles }) => deletedFiles.size)).toEqual([0, 0]);
    const gone = searched(statSync(".").dev, [placeOf(2 ** 22 + 1)]);
    expect(gone.uses.map(({ deletedFiles }) => deletedFiles.size)).toEqual([0, 0]);
  });
});

describe("memory that processes share", () => {
  const shown = `
shared = share(8)
ctypes.memset(shared, 1, 4 << 20)
libc.madvise(ctypes.c_void_p(shared), 8 << 20, 4)`;

  test("counts as large as it is mapped, though no page is touched", async () => {
    const { processes, device } = await startPython(shown);
    expect(sharedIn(searched(device, processes))).toBe(8);
  });

  test("counts once for all who map it", async () => {
    const { processes, device } = await startPython(shown);
    expect(sharedIn(searched(device, [...processes, ...processes]))).toBe(8);
  });

  test("counts as large as it was mapped once when most of it is unmapped", async () => {
    const { processes, device, child } = await startPython(`
shared = share(8)
ctypes.memset(shared, 1, 8 << 20)
print("mapped", flush=True)
sys.stdin.readline()
libc.munmap(shared + 4096, (8 << 20) - 4096)`);
    const search = searched(device, processes);
    child.stdin.write("go\n");
    await once(child.stdout, "data");
    searchMappings(search, processes);
    expect(sharedIn(search)).toBe(8);
  });

  test("does not count when its processes are gone", async () => {
    const { processes, device, child } = await startPython(shown);
    const search = searched(device, processes);
    child.kill("SIGKILL");
    await once(child, "exit");
    searchMappings(search, processes);
    expect(sharedIn(search)).toBe(0);
  });

  test("is searched for with pauses, however many mappings there are", async () => {
    const { processes, device } = await startPython(`
pieces = [libc.mmap(None, 4096, 1 + 2 * (number % 2), 0x22, -1, 0) for number in range(20_000)]
${shown}`);
    const search = new OpenFilesSearch(device);
    onTestFinished(() => search[Symbol.dispose]());
    let pieces = 0;
    for (; sharedIn(search) === 0; pieces++) search.goOn(processes, -Infinity);
    expect(sharedIn(search)).toBe(8);
    // The kernel lists some dozens at once.
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
