import { describe, expect, test } from "vitest";
import { smallestNext, versionRefusals } from "../../../scripts/release/rules.ts";

const fix = "\n### Fixed\n\n- A fix.\n";
const addition = `\n### Added\n\n- A thing.\n${fix}`;
const marked = "\n### Fixed\n\n- **Breaking:** a fix\n  that asks for a change.\n";
const removal = "\n### Removed\n\n- A thing.\n";

describe("the smallest next version", () => {
  test.each([
    ["1.2.3", fix, "1.2.4"],
    ["1.2.3", "\n### Security\n\n- A fix.\n", "1.2.4"],
    ["1.2.3", addition, "1.3.0"],
    ["1.2.3", "\n### Changed\n\n#### Tools\n\n- A change.\n", "1.3.0"],
    ["1.2.3", removal, "2.0.0"],
    ["1.2.3", marked, "2.0.0"],
    ["0.2.3", fix, "0.2.4"],
    ["0.2.3", addition, "0.2.4"],
    ["0.2.3", removal, "0.3.0"],
    ["0.2.3", marked, "0.3.0"],
  ])("after %s, for %j, is %s", (last, unreleased, expected) => {
    expect(smallestNext(last, unreleased)).toBe(expected);
  });
});

describe("a version", () => {
  const facts = { current: "1.2.3", last: "1.2.3", unreleased: addition };

  test("may be the smallest, or greater", () => {
    for (const version of ["1.3.0", "1.4.0", "2.0.0"]) {
      expect(versionRefusals({ ...facts, version })).toEqual([]);
    }
  });

  test.each(["1.3", "v1.3.0", "1.03.0", "1.3.0-rc.1", "1.3.0+1", "next", ""])(
    "is refused as %j",
    (version) => {
      expect(versionRefusals({ ...facts, version })).toEqual([
        expect.stringContaining("is not MAJOR.MINOR.PATCH"),
      ]);
    },
  );

  test("is greater than the last tag", () => {
    expect(versionRefusals({ ...facts, version: "1.2.3" })).toEqual([
      "1.2.3 is not greater than 1.2.3, the last tag",
    ]);
  });

  test("is as great as the changelog asks", () => {
    expect(versionRefusals({ ...facts, version: "1.2.4" })).toEqual([
      "1.2.4 is too small: after 1.2.3, [Unreleased] asks for 1.3.0",
    ]);
  });

  test("is not smaller than that of package.json, which the first release may have", () => {
    const first = { ...facts, last: undefined };
    expect(versionRefusals({ ...first, version: "1.2.3" })).toEqual([]);
    expect(versionRefusals({ ...first, version: "1.2.2" })).toEqual([
      "1.2.2 is smaller than 1.2.3 of package.json",
    ]);
  });

  test("needs an entry in the changelog", () => {
    const unreleased = "\nNothing yet.\n\n### Added\n";
    expect(versionRefusals({ ...facts, unreleased, version: "2.0.0" })).toEqual([
      "[Unreleased] of CHANGELOG.md has no entry",
    ]);
  });
});
