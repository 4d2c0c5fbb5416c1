import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { datedChangelog, entries, unreleasedOf } from "../../../scripts/release/changelog.ts";

const older = "## [1.0.0] - 2026-01-02\n\n### Added\n\n- The first.\n";
const changes = "\n### Fixed\n\n- One,\n  on two lines.\n- Another.\n\n";
const changelog = `# Changelog\n\n## [Unreleased]\n${changes}${older}`;

describe("[Unreleased]", () => {
  test("ends at the next version, or with the file", () => {
    expect(unreleasedOf(changelog)).toBe(changes);
    expect(unreleasedOf(`## [Unreleased]\n${changes}`)).toBe(changes);
    expect(() => unreleasedOf(older)).toThrow("no section [Unreleased]");
  });

  test("has entries of one or more lines", () => {
    expect(entries(changes).map((entry) => entry.trim())).toEqual([
      "- One,\n  on two lines.",
      "- Another.",
    ]);
  });

  test("becomes a dated section under an empty one", () => {
    const dated = datedChangelog(changelog, "1.0.1", "2026-02-03");
    expect(dated).toBe(
      `# Changelog\n\n## [Unreleased]\n\n## [1.0.1] - 2026-02-03\n${changes}${older}`,
    );
    expect(entries(unreleasedOf(dated))).toEqual([]);
  });

  test("is in this project's changelog", () => {
    const path = join(import.meta.dirname, "../../../CHANGELOG.md");
    expect(() => unreleasedOf(readFileSync(path, "utf8"))).not.toThrow();
  });
});
