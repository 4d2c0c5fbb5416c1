/**
 * The memory that a kernel which is a program keeps in one file.
 */
import { expect, onTestFinished, test, vi } from "vitest";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { MemoryFile } from "../../../../worker/sandbox/accounting/memory-file.ts";
import { patience } from "../../../support/patience.ts";

const holds = `
import os
held = os.memfd_create("kernel-memory")
os.write(held, bytes(8 << 20))
print("ready", flush=True)
os.read(0, 1)
`;

test("is as large as its pages, also those that nobody has mapped", async () => {
  // A child of the first process, as the kernel is.
  const argv = ["-c", 'python3 -c "$1"; :', "sh", holds];
  const child = spawn("/bin/sh", argv, { stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => void child.stdin.end());
  await once(child.stdout, "data");
  const file = new MemoryFile(child.pid!, "kernel-memory");
  await vi.waitFor(() => expect(file.read()).toEqual({ bytes: 8 * 2 ** 20, files: 0 }), patience);
  expect(new MemoryFile(child.pid!, "kernel").read()).toBeUndefined();
  child.stdin.end();
  await once(child, "exit");
  expect(file.read()).toBeUndefined();
});

test("that never shows fails, so that nothing runs without a bound", () => {
  const file = new MemoryFile(process.pid, "no-such-file");
  expect(() => {
    for (let look = 0; look < 1_000; look++) file.read();
  }).toThrow("does not show");
});
