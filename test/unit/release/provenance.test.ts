/**
 * Which packages npm gives provenance.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { provenanceRefusal } from "../../../scripts/release/provenance.ts";

function refusalFor(repository: unknown): string | undefined {
  const root = mkdtempSync(join(tmpdir(), "str-provenance-"));
  onTestFinished(() => {
    rmSync(root, { recursive: true });
  });
  writeFileSync(join(root, "package.json"), JSON.stringify({ repository }));
  return provenanceRefusal(root);
}

describe("provenance", () => {
  test.each([
    "https://github.com/owner/name",
    "owner/name",
    "gitlab:owner/name",
    { type: "git", url: "git+https://github.com/owner/name.git" },
  ])("can be given for %j", (repository) => {
    expect(refusalFor(repository)).toBeUndefined();
  });

  test("cannot be given without a repository, or with one of another host", () => {
    expect(refusalFor(undefined)).toContain("names no repository");
    const elsewhere = "https://git.example.com/owner/name";
    expect(refusalFor(elsewhere)).toContain(`neither of GitHub nor of GitLab: ${elsewhere}`);
  });
});
