/**
 * The archive of the empty image, as tar(1) reads it.
 */
import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { archiveOf } from "../../../../worker/sandbox/docker/engine/archive.ts";

const entries = [
  { name: "usr" },
  { name: "tmp", isOpen: true },
  { name: "sandbox/work" },
  { name: "lib", linkTarget: "usr/lib" },
];

test("an archive has directories and links, for everybody to read", () => {
  const { stdout, stderr, status } = spawnSync("tar", ["-tv", "--numeric-owner", "--utc"], {
    input: archiveOf(entries),
    encoding: "utf8",
    env: { PATH: "/usr/bin:/bin", LC_ALL: "C" },
  });
  expect([stderr, status]).toEqual(["", 0]);
  expect(stdout.trim().split("\n")).toEqual([
    "drwxr-xr-x 0/0               0 1970-01-01 00:00 usr/",
    "drwxrwxrwt 0/0               0 1970-01-01 00:00 tmp/",
    "drwxr-xr-x 0/0               0 1970-01-01 00:00 sandbox/work/",
    "lrwxrwxrwx 0/0               0 1970-01-01 00:00 lib -> usr/lib",
  ]);
});

test("the same entries make the same bytes, and too long a name none", () => {
  expect(archiveOf(entries)).toEqual(archiveOf(entries));
  expect(() => archiveOf([{ name: "x".repeat(100) }])).toThrow(RangeError);
});
