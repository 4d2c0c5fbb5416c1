/**
 * What git says of the tree that is to be released.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { rcompare } from "semver";

const releaseBranch = "main";
/** `.ci/run` writes the commit that passed it here, in git's own directory. */
const passedRecord = "tests-passed";
const releaseTag = /^v(\d+\.\d+\.\d+)$/;

/** Runs git in `root` and returns its output. Throws with git's own message. */
export function git(root: string, ...args: readonly string[]): string {
  return execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: "pipe" }).trimEnd();
}

/** The highest version with a tag `vMAJOR.MINOR.PATCH`, on whichever branch. */
export function lastReleased(root: string): string | undefined {
  return git(root, "tag", "--list")
    .split("\n")
    .flatMap((tag) => releaseTag.exec(tag)?.[1] ?? [])
    .sort(rcompare)[0];
}

/** Reasons not to release this tree, for people; empty if there are none. */
export function treeRefusals(root: string): readonly string[] {
  const refusals: string[] = [];
  const changes = git(root, "status", "--porcelain");
  if (changes !== "") refusals.push(`the tree is dirty:\n${changes}`);
  const branch = git(root, "rev-parse", "--abbrev-ref", "HEAD");
  if (branch !== releaseBranch) refusals.push(`the branch is ${branch}, not ${releaseBranch}`);
  const commit = git(root, "rev-parse", "HEAD");
  const passed = passedCommit(root);
  if (passed !== commit) {
    const last = passed === undefined ? "none has" : `the last that has is ${passed}`;
    refusals.push(`commit ${commit} has not passed .ci/run in this clone; ${last}`);
  }
  return refusals;
}

function passedCommit(root: string): string | undefined {
  const path = resolve(root, git(root, "rev-parse", "--git-path", passedRecord));
  return existsSync(path) ? readFileSync(path, "utf8").trim() : undefined;
}
