/**
 * The free space for work directories.
 */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { FreeDisk } from "../../../../worker/invocation/slots/capacity.ts";

let directory: string;
let clock: { readonly reads: number; nowMs: number; monotonicMs(): number };
let disk: FreeDisk;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "str-disk-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  let reads = 0;
  clock = {
    nowMs: 1_000,
    get reads() {
      return reads;
    },
    monotonicMs() {
      reads++;
      return this.nowMs;
    },
  };
  disk = new FreeDisk(directory, clock);
});

test("is that of the file system, sampled again when the sample is too old", async () => {
  const bytes = await disk.bytes();
  expect(bytes).toBeGreaterThan(0);
  await rm(directory, { recursive: true });
  expect(await disk.bytes()).toBe(bytes);
  clock.nowMs += 201;
  await expect(disk.bytes()).rejects.toThrow("ENOENT");
});

test("is not waited for where it was sampled ahead", async () => {
  disk.sampleAhead();
  // Once for the age of the last sample, and when there is one.
  await vi.waitFor(() => expect(clock.reads).toBe(2));
  await rm(directory, { recursive: true });
  expect(await disk.bytes()).toBeGreaterThan(0);
  disk.sampleAhead();
  expect(await disk.bytes()).toBeGreaterThan(0);
});

test("is sampled again after a sample ahead that failed, for which somebody waited", async () => {
  await rm(directory, { recursive: true });
  disk.sampleAhead();
  await expect(disk.bytes()).rejects.toThrow("ENOENT");
  await mkdir(directory);
  expect(await disk.bytes()).toBeGreaterThan(0);
});
