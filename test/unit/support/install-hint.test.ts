/**
 * What a host without bubblewrap or Python is told.
 */
import { describe, expect, test } from "vitest";
import { installHint, missingProgram } from "../../../worker/support/install-hint.ts";

describe("a program that is missing", () => {
  test.each([
    ["Debian", 'PRETTY_NAME="Debian 12"\nID=debian\n', "as root: apt-get install -y bubblewrap"],
    [
      "a kin of Ubuntu",
      'ID=pop\nID_LIKE="ubuntu debian"\n',
      "as root: apt-get install -y bubblewrap",
    ],
    ["Fedora", "ID=fedora\nVERSION_ID=41\n", "as root: dnf install -y bubblewrap"],
    [
      "a kin of RHEL",
      'ID="rocky"\nID_LIKE="rhel centos fedora"\n',
      "as root: dnf install -y bubblewrap",
    ],
    ["Alpine", "ID=alpine\n", "as root: apk add bubblewrap"],
  ])("is installed on %s by its command", (_system, osRelease, command) => {
    expect(installHint("bubblewrap", osRelease)).toBe(
      `there is no such file; install bubblewrap 0.8 or newer, ${command}`,
    );
  });

  test("is named where the system is not known", () => {
    const hint = "there is no such file; install Python 3.9 or newer";
    expect(installHint("python", "ID=plan9\n")).toBe(hint);
    expect(installHint("python", "")).toBe(hint);
  });

  test("is one that is not there", async () => {
    expect(await missingProgram("/bin/sh", "python")).toBeUndefined();
    expect((await missingProgram("/no/such/python3", "python"))?.message).toContain("Python 3.9");
  });
});
