/**
 * What a sandbox holds of others that have ended, by descriptors that it got over a socket of their
 * common network: it counts with its own, and what nobody can count ends it.
 */
import { randomBytes } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { type TestContext, describe, expect, test, vi } from "vitest";
import type { Limits } from "../../../worker/protocol/resource-limits.ts";
import type { BubblewrapBackend } from "../../../worker/sandbox/bubblewrap/backend.ts";
import { patience } from "../../support/patience.ts";
import { slowPlace } from "../../support/sandboxes/quick-place.ts";
import { templateHosts } from "../../support/sandboxes/template-host.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import type { ExitReport, Sandbox } from "../../../worker/sandbox/sandbox.ts";
import { never, outputFile, request, sharedBackends } from "./sandbox-host.ts";
import { isRoot } from "../../support/is-root.ts";

const MiB = 1024 * 1024;

const open = sharedBackends();
const openOnDisk = templateHosts(sharedBackends(slowPlace));
const standard = builtInProfiles.get("standard")!;

/** A sandbox in the host's network, where abstract sockets of others can be reached. */
async function acquire(backend: BubblewrapBackend, limits: Partial<Limits> = {}) {
  const profile = {
    ...standard,
    network: "host" as const,
    limits: { ...standard.limits, ...limits },
  };
  return await backend.acquire(request({ profile, memoryBound: "resident" }), never);
}

async function runPython(sandbox: Sandbox, program: string): Promise<ExitReport> {
  const { exited } = await sandbox.start({ argv: ["/usr/bin/python3", "-c", program] });
  return await exited;
}

/** Receives a descriptor from each of some others, keeps it in a way of its own, and goes on. */
const keeper = (address: string, others: number, keep: string) => `
import ctypes, mmap, os, socket, time
server = socket.socket(socket.AF_UNIX)
server.bind("\\0${address}")
server.listen()
open("output/ready", "w").close()
kept = []
for _ in range(${others}):
    giver, _ = server.accept()
    _, descriptors, _, _ = socket.recv_fds(giver, 1, 1)
    descriptor = descriptors[0]
    ${keep}
    giver.send(b"k")
time.sleep(30)
print("went on")
`;

/** Gives a descriptor away, and ends when the other one has it, or has ended. */
const giver = (address: string, make: string, until: "kept" | "over") => `
import os, socket
def filled(path, mebibytes, beginning=os.devnull):
    with open(path, "wb", buffering=0) as file:
        file.write(open(beginning, "rb").read())
        os.fchmod(file.fileno(), 0o755)
        for _ in range(mebibytes): file.write(bytes(1 << 20))
    return os.open(path, os.O_RDONLY)
descriptor = ${make}
keeper = socket.socket(socket.AF_UNIX)
keeper.connect("\\0${address}")
socket.send_fds(keeper, [b"x"], [descriptor])
keeper.recv(1)
if ${until === "over" ? "True" : "False"}:
    keeper.recv(1)
print("given")
`;

interface Held {
  readonly limits: Partial<Limits>;
  readonly others?: number;
  readonly make: string;
  readonly keep: string;
  /** When the others end. A work directory is gone soon after. */
  readonly until?: "kept" | "over";
}

/** What became of a sandbox that holds something of others, and of them. */
async function hold(
  context: TestContext,
  withoutCgroups: boolean,
  { limits, others = 1, make, keep, until = "kept" }: Held,
) {
  const backend = await open(context, withoutCgroups);
  const address = `str-test-${randomBytes(8).toString("hex")}`;
  await using keeping = await acquire(backend, limits);
  const kept = runPython(keeping, keeper(address, others, keep));
  await outputFile(keeping, "ready");
  const given: string[] = [];
  const directories: string[] = [];
  for (let number = 0; number < others; number++) {
    await using giving = await acquire(backend);
    directories.push(giving.workDir.path);
    const report = await runPython(giving, giver(address, make, until));
    given.push(report.stdout.text, report.stderr.text);
  }
  return { ...(await kept), given, directories };
}

const holdingOthers = (withoutCgroups: boolean): void => {
  const memory = [
    ["open", "kept.append(descriptor)", "filled('/tmp/file', 60)", 2],
    [
      "open, of one file among others",
      "kept.append(descriptor)",
      "(filled('/dev/shm/other', 60), filled('/dev/shm/file', 1))[1]",
      2,
    ],
    [
      "as its directory",
      "os.fchdir(descriptor); os.close(descriptor)",
      "(filled('/tmp/file', 150), os.open('/tmp', os.O_RDONLY))[1]",
      1,
    ],
    [
      "mapped",
      "kept.append(mmap.mmap(descriptor, 4096, prot=mmap.PROT_READ)); os.close(descriptor)",
      "filled('/tmp/file', 1)",
      1,
    ],
  ] as const;

  async function isEndedForMemory(row: (typeof memory)[number], context: TestContext) {
    const [, keep, make, others] = row;
    const limits = { memoryBytes: 100 * MiB };
    const held = await hold(context, withoutCgroups, { limits, others, make, keep });
    expect(held).toMatchObject({
      signal: "SIGKILL",
      exceeded: { limit: "memoryBytes", bound: 100 * MiB },
      stdout: { text: "" },
    });
    expect(held.given).toContain("given\n");
  }
  const usual: readonly string[] = ["open", "mapped"];
  test.for(memory.filter(([what]) => usual.includes(what)))(
    "that holds too much of others' memory is ended for it: %s",
    { tags: "promise-S17" },
    isEndedForMemory,
  );
  test.for(memory.filter(([what]) => !usual.includes(what)))(
    "that holds too much of others' memory is ended for it: %s",
    { tags: ["full", "promise-S17"] },
    isEndedForMemory,
  );

  test.for([
    ["open", "kept.append(descriptor)"],
    [
      "as the program that it runs",
      `os.set_inheritable(descriptor, False)
    if os.fork() == 0: os.execve(descriptor, ["sleep", "30"], {})
    os.close(descriptor)`,
    ],
  ] as const)(
    "that holds a file of others' work directories is ended for too much disk: %s",
    { tags: "promise-S17" },
    async ([, keep], context) => {
      const held = await hold(context, withoutCgroups, {
        limits: { diskBytes: 30 * MiB },
        others: 2,
        make: "filled('output/file', 20, '/usr/bin/sleep')",
        keep,
      });
      expect(held).toMatchObject({
        signal: "SIGKILL",
        exceeded: { limit: "diskBytes", bound: 30 * MiB },
      });
    },
  );

  test.for([
    ["open", "kept.append(descriptor)"],
    ["as its own", "os.fchdir(descriptor); os.close(descriptor)"],
  ] as const)(
    "that holds others' work directory is ended, since nobody counts what is in there: %s",
    { tags: "promise-S17" },
    async ([, keep], context) => {
      const { files } = standard.limits;
      const held = await hold(context, withoutCgroups, {
        limits: {},
        make: "os.open('.', os.O_RDONLY)",
        keep,
        until: "over",
      });
      expect(held).toMatchObject({
        signal: "SIGKILL",
        exceeded: { limit: "files", bound: files },
      });
      const [directory = ""] = held.directories;
      await vi.waitFor(() => expect(existsSync(directory)).toBe(false), patience);
    },
  );

  test(
    "that hides what it has open by a program that it cannot read is ended",
    { tags: "promise-S17" },
    async (context) => {
      const backend = await open(context, withoutCgroups);
      await using sandbox = await acquire(backend, { diskBytes: 20 * MiB });
      const hides = `
import os, shutil
shutil.copy("/usr/bin/sleep", "/tmp/sleep")
os.chmod("/tmp/sleep", 0o111)
with open("file", "wb", buffering=0) as file:
    os.unlink("file")
    for _ in range(10 if ${isRoot ? "False" : "True"} else 30): file.write(bytes(1 << 20))
    os.set_inheritable(file.fileno(), True)
    os.execv("/tmp/sleep", ["sleep", "30"])
`;
      // Nothing is hidden from root.
      const limit = isRoot ? "diskBytes" : "files";
      expect(await runPython(sandbox, hides)).toMatchObject({ exceeded: { limit } });
    },
  );

  test(
    "that holds files of its own and of the host, in many ways, goes on",
    { tags: "promise-S17" },
    async (context) => {
      const backend = await open(context, withoutCgroups);
      await using sandbox = await acquire(backend);
      const honest = `
import mmap, os, subprocess, sys, tempfile, time
kept = [open("/usr/bin/env", "rb"), tempfile.TemporaryFile(), tempfile.NamedTemporaryFile(dir="/dev/shm")]
kept.append(tempfile.TemporaryFile(dir="output"))
kept += [os.open(path, os.O_RDONLY) for path in ("/usr", "/tmp", "/dev/shm", ".", "output", "/proc/self", "/dev")]
for path in ("/tmp/mapped", "/dev/shm/mapped", "mapped"):
    with open(path, "wb+", buffering=0) as file:
        file.write(bytes(4096))
        kept.append(mmap.mmap(file.fileno(), 4096))
kept.append(mmap.mmap(-1, 1 << 20))
os.unlink("/tmp/mapped")
os.mkdir("gone")
child = subprocess.Popen(["/usr/bin/sleep", "1"], cwd="gone")
os.rmdir("gone")
os.chdir("/tmp")
child.wait()
print("went on")
`;
      expect(await runPython(sandbox, honest)).toMatchObject({
        exitCode: 0,
        stdout: { text: "went on\n" },
        stderr: { text: "" },
      });
    },
  );

  async function isNotCharged(
    startMode: "template" | "cold",
    diskBytes: number,
    context: TestContext,
  ): Promise<void> {
    const isOneDisk = statSync(slowPlace).dev === statSync("/usr/bin").dev;
    context.skip(!isOneDisk, `${slowPlace} is on another disk than /usr`);
    const host = await openOnDisk(context, {
      files: { "tool.py": "import time\ndef run():\n    time.sleep(0.5)\n    return {}\n" },
      limits: { diskBytes },
      withoutCgroups,
    });
    await using template = startMode === "template" ? await host.openTemplate() : undefined;
    const { report } = await host.call(template, "run");
    expect(report).toMatchObject({ exitCode: 0, exceeded: undefined });
  }
  const free = "whose work directory is on the disk of its programs is not charged for them";
  test(`${free}: template`, (context) => isNotCharged("template", MiB, context));
  test(`${free}: cold`, { tags: "full" }, (context) => isNotCharged("cold", MiB / 32, context));
};
describe("a sandbox, with control groups where there are some,", () => holdingOthers(false));
describe("a sandbox, without control groups,", { tags: "full" }, () => holdingOthers(true));
