/**
 * Copies of what tools left: plain files, and nothing that leads elsewhere.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import {
  chmod,
  link,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { copyLeftTree } from "../../../harness/tool/kept-tree.ts";

let from = "";
let to = "";
beforeEach(async () => {
  const base = await mkdtemp(join(tmpdir(), "kept-tree-test-"));
  onTestFinished(() => rm(base, { recursive: true }));
  [from, to] = [join(base, "from"), join(base, "to")];
  await mkdir(from);
  await mkdir(to);
});

describe("a copy of a work directory", () => {
  test("has the files of every level with their content", async () => {
    const large = Buffer.alloc(600_000, "abc");
    await mkdir(join(from, "a", "b"), { recursive: true });
    await writeFile(join(from, "a", "b", "large"), large);
    await writeFile(join(from, "empty"), "");
    expect((await copyLeftTree(from, to)).leftOut).toEqual([]);
    expect((await readFile(join(to, "a", "b", "large"))).equals(large)).toBe(true);
    expect(await readFile(join(to, "empty"), "utf8")).toBe("");
  });

  test("is for its owner alone, whatever the modes were", async () => {
    await mkdir(join(from, "open"));
    await writeFile(join(from, "open", "program"), "#!/bin/sh\n");
    await chmod(join(from, "open", "program"), 0o6777);
    await chmod(join(from, "open"), 0o777);
    await copyLeftTree(from, to);
    expect((await stat(join(to, "open"))).mode & 0o7777).toBe(0o700);
    expect((await stat(join(to, "open", "program"))).mode & 0o7777).toBe(0o600);
  });

  test("follows nothing and waits for nobody: links, pipes, sockets and second names are left out", async () => {
    const secret = join(from, "..", "secret");
    await writeFile(secret, "secret");
    await symlink(secret, join(from, "link"));
    await symlink("..", join(from, "directory-link"));
    await link(secret, join(from, "second-name"));
    execFileSync("mkfifo", [join(from, "pipe")]);
    const server = createServer().listen(join(from, "socket"));
    onTestFinished(() => void server.close());
    await writeFile(join(from, "plain"), "plain");
    const { leftOut } = await copyLeftTree(from, to);
    expect([...leftOut].sort()).toEqual([
      "directory-link",
      "link",
      "pipe",
      "second-name",
      "socket",
    ]);
    expect(await readdir(to)).toEqual(["plain"]);
  });

  test("has bounds: a tree that is too deep or too large is copied in part", async () => {
    const deep = Array.from({ length: 40 }, () => "d").join("/");
    await mkdir(join(from, deep), { recursive: true });
    await writeFile(join(from, deep, "bottom"), "");
    execFileSync("truncate", ["-s", "2G", join(from, "sparse")]);
    const { leftOut } = await copyLeftTree(from, to);
    expect(leftOut).toHaveLength(2);
    expect(leftOut).toContain("sparse");
    expect(leftOut.find((path) => path !== "sparse")).toMatch(/^d(\/d){32}$/);
  });

  test("stops at a number of entries", { tags: "full" }, async () => {
    for (let index = 0; index < 10_005; index++) writeFileSync(join(from, `${index}`), "");
    const { leftOut } = await copyLeftTree(from, to);
    expect(leftOut).toEqual(["… (more than 10000 entries)"]);
    expect(await readdir(to)).toHaveLength(10_000);
  });
});
