/**
 * Files without a name, in real processes.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { HeldFilesSearch, deviceName } from "../../../worker/sandbox/totals/held-files.ts";

const MiB = 1024 * 1024;

/** A Python process in a directory of its own that has done something and goes on; what a search finds of it there. */
async function heldBy(script: string) {
  const directory = await mkdtemp(join(tmpdir(), "str-held-"));
  const child = spawn(
    "/usr/bin/python3",
    ["-c", `${prelude}${script}\nprint("done", flush=True)\nsys.stdin.read()`],
    {
      cwd: directory,
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await rm(directory, { recursive: true });
  });
  await once(child.stdout, "data");
  const search = new HeldFilesSearch(statSync(directory).dev);
  search.goOn([child.pid!], Infinity);
  const [whole] = search.uses;
  return [...whole!.values()].map((bytes) => bytes / MiB);
}

const prelude = `
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
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

  test("counts up to the end of what is mapped when it is closed", async () => {
    const script = `
file = new_file("file", 4)
libc.mmap(None, 1 << 20, 1, 1, file, 2 << 20)
os.close(file)
os.unlink("file")
named = new_file("named", 5)
libc.mmap(None, 1 << 20, 1, 1, named, 0)`;
    expect(await heldBy(script)).toEqual([3]);
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
  test("pauses between descriptors, and finds nothing where no process is", async () => {
    const search = new HeldFilesSearch(statSync(".").dev);
    search.goOn([process.pid], -Infinity);
    expect(search.uses.map(({ size }) => size)).toEqual([0, 0]);
    search.goOn([2 ** 22 + 1], Infinity);
    search.goOn([2 ** 22 + 1], Infinity);
    expect(search.uses.map(({ size }) => size)).toEqual([0, 0]);
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
