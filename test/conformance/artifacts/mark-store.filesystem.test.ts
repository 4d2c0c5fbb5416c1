/**
 * The marks of the filesystem store, held to the contract of all marks.
 */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { FileMarks } from "../../../worker/artifacts/filesystem/marks.ts";
import { describeMarkStore } from "./mark-store.ts";

describeMarkStore("filesystem", async () => {
  const base = await mkdtemp(join(tmpdir(), "str-marks-"));
  onTestFinished(async () => {
    const names = await readdir(base);
    await rm(base, { recursive: true });
    expect([".str-claims", undefined]).toContain(names[0]);
    expect(names.length).toBeLessThan(2);
  });
  return [new FileMarks(base), new FileMarks(base)];
});
