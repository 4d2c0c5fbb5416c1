/**
 * Isolation: what code of a backend that is not the bare host must not reach.
 */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { chmod, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BackendCheck } from "./under-check.ts";
import { becomes } from "./check.ts";

/** Milliseconds within which a process that code has left behind must be gone. */
const goneWithinMs = 2_000;
/** A file of the host that sandboxes are not to see, and that every host has. */
const secretName = "secret.txt";

const checks: readonly BackendCheck[] = [
  [
    "runs code neither as root nor as its own user",
    async ({ run, programs }) => {
      const { value } = await run(programs.user);
      if (value === "absent") return;
      assert.equal(typeof value, "number");
      assert.notEqual(value, 0);
      assert.notEqual(value, process.getuid?.());
    },
  ],
  [
    "shows code no file of the host",
    async ({ run, programs }) => {
      const directory = await mkdtemp(join(tmpdir(), "str-check-"));
      try {
        // Whoever sees it can read it.
        await chmod(directory, 0o755);
        const path = join(directory, secretName);
        await writeFile(path, "secret", { mode: 0o644 });
        for (const file of [path, "/etc/shadow", `/proc/${process.pid}/environ`]) {
          const { value } = await run(programs.readFile(file));
          assert.equal(typeof value, "string");
          assert.notEqual(value, "read", `${file} was read`);
        }
      } finally {
        await rm(directory, { recursive: true, force: true });
      }
    },
  ],
  [
    "gives code no network",
    async ({ run, programs }) => {
      let connections = 0;
      const server = createServer((socket) => {
        connections++;
        socket.destroy();
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      try {
        const { port } = server.address() as AddressInfo;
        const { value } = await run(programs.connect(port));
        assert.equal(typeof value, "string");
        assert.notEqual(value, "connected");
        assert.equal(connections, 0);
      } finally {
        server.close();
      }
    },
  ],
  [
    "leaves no process behind",
    async ({ run, programs }) => {
      // A number of seconds that no other process has among its arguments.
      const seconds = `${randomInt(600, 900)}.${randomInt(10 ** 9, 10 ** 10)}`;
      const outcome = await run(programs.leavesProcess(seconds)).catch((error: unknown) => error);
      const { value } = outcome as { readonly value?: unknown };
      assert.ok(value === "started" || value === "absent", String(outcome));
      await becomes("the process is gone", async () => !(await isRunning(seconds)), goneWithinMs);
    },
  ],
];

export function isolationChecks(): readonly BackendCheck[] {
  return checks;
}

/** Whether a process of this host has a text among its arguments. */
async function isRunning(argument: string): Promise<boolean> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")),
  );
  return lines.some((line) => line.split("\0").includes(argument));
}
