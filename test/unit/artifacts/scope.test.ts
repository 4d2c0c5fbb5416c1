import { anyCharacter, fc, test as propertyTest } from "../../support/properties/property.ts";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { directoryLevels } from "../../../worker/artifacts/filesystem/directories.ts";
import { artifactKey, artifactScope, maxNameBytes } from "../../../worker/artifacts/scope.ts";
import type { ArtifactKey } from "../../../worker/artifacts/scope.ts";
import { StoreError } from "../../../worker/artifacts/store.ts";
import { scope } from "./fixtures.ts";

const caller = { appName: "AgentA", userId: "user-42", sessionId: "web-1" };

function refusalOf(refuse: () => unknown): StoreError {
  try {
    refuse();
  } catch (error) {
    if (error instanceof StoreError) return error;
    throw error;
  }
  throw new Error("was not refused");
}

describe("the scope of a call", () => {
  test("is the namespace exactly as it was spelled", () => {
    const { root } = artifactScope({ kind: "namespace", namespace: "myorg/dev/" }, caller);
    expect(root).toBe("myorg/dev/");
  });

  test("is the agent's name when every agent has its own artifacts", () => {
    expect(artifactScope({ kind: "app" }, caller)).toEqual({
      root: "AgentA",
      userId: "user-42",
      sessionId: "web-1",
    });
  });

  test("is the value that the operator chose", () => {
    expect(artifactScope({ kind: "custom", value: "shared" }, caller).root).toBe("shared");
  });

  test.for(["", "..", "Agent/A", "AgentA/", "/", "a\nb"])(
    "is never an agent's name such as %j",
    (appName) => {
      const error = refusalOf(() => artifactScope({ kind: "app" }, { ...caller, appName }));
      expect(error.reason).toBe("invalid-name");
      expect(error.message).toMatch(/^The scope ".*" is refused: /);
    },
  );
});

describe("a key", () => {
  test("has the session's level, and the filename as its name", () => {
    expect(artifactKey(scope, "report.csv")).toEqual({
      root: "ed_test",
      userId: "user-42",
      sessionOrUser: "web-1",
      name: "report.csv",
    });
  });

  test("has the user's level in place of the session for user: filenames", () => {
    expect(artifactKey(scope, "user:prefs.json")).toMatchObject({
      sessionOrUser: "user",
      name: "prefs.json",
    });
  });

  test.for([
    ["a\u202fb.txt", "a b.txt"],
    ["cafe\u0301", "caf\u00e9"],
    ["ｕｓｅｒ：x", "x"],
    ["a．txt", "a.txt"],
  ] as const)("has the NFKC form of the filename %j", ([filename, name]) => {
    expect(artifactKey(scope, filename).name).toBe(name);
  });

  test("takes a name of exactly the longest length", () => {
    expect(artifactKey(scope, "n".repeat(maxNameBytes)).name).toHaveLength(maxNameBytes);
    expect(artifactKey(scope, `user:${"é".repeat(127)}n`).name).toHaveLength(128);
  });
});

describe("a refusal", () => {
  test.for([
    ["filename", { ...scope }, "..", 'The filename ".." is refused: it means a directory.'],
    ["filename", { ...scope }, "a／b", 'The filename "a/b" is refused: it holds a slash.'],
    ["filename", { ...scope }, "user:", 'The filename "" is refused: it is empty.'],
    [
      "user",
      { ...scope, userId: "a/b@x.com" },
      "a",
      'The user "a/b@x.com" is refused: it holds a slash.',
    ],
    ["session", { ...scope, sessionId: "" }, "a", 'The session "" is refused: it is empty.'],
    [
      "session",
      { ...scope, sessionId: "user" },
      "a",
      'The session "user" is refused: that is where artifacts of the user are kept.',
    ],
    ["scope", { ...scope, root: "a/.." }, "a", 'The scope ".." is refused: it means a directory.'],
    ["scope", { ...scope, root: "//" }, "a", 'The scope "//" is refused: it is empty.'],
  ] as const)("of a %s says which and why", ([, from, filename, message]) => {
    const error = refusalOf(() => artifactKey(from, filename));
    expect(error).toMatchObject({ reason: "invalid-name", message });
  });

  test("quotes a name so that it can be shown anywhere", () => {
    const error = refusalOf(() => artifactKey(scope, "a\u001b[2J\u0085\u2028\u202eb"));
    expect(error.message).toContain('"a\\u001b[2J\\u{85}\\u{2028}\\u{202e}b"');
  });

  test("quotes no more than the start of a long name", () => {
    const error = refusalOf(() => artifactKey(scope, "x".repeat(10_000_000)));
    expect(error.message).toContain("it is longer than 255 bytes");
    expect(error.message.length).toBeLessThan(150);
  });

  test("of a filename that would take long to normalise comes before normalising it", () => {
    const normalise = vi.spyOn(String.prototype, "normalize");
    onTestFinished(() => normalise.mockRestore());
    refusalOf(() => artifactKey(scope, "\ufdfa".repeat(9_000_000)));
    expect(normalise).not.toHaveBeenCalled();
  });
});

describe("the directories of a key", () => {
  test.for([
    ["ed_test", "report.csv", ["ed_test", "user-42", "web-1", "report.csv"]],
    ["ed_test/", "report.csv", ["user-42", "web-1", "report.csv"]],
    ["myorg/dev", "report.csv", ["dev", "user-42", "web-1", "report.csv"]],
    ["/myorg//dev//", "report.csv", ["user-42", "web-1", "report.csv"]],
    ["ed_test", "年.csv", ["ed_test", "user-42", "web-1", "年.csv"]],
    ["ed_test", "user:prefs.json", ["ed_test", "user-42", "user", "prefs.json"]],
    ["ed_test/", "user:prefs.json", ["user-42", "user", "prefs.json"]],
  ] as const)("in scope %j for %j are those of the original", ([root, filename, levels]) => {
    expect(directoryLevels(artifactKey({ ...scope, root }, filename))).toEqual(levels);
  });
});

const nastyName = fc.oneof(
  fc
    .array(fc.constantFrom("a", ".", "/", "\\", ":", "user:", "user", "／", "．", "\0", "é", " "), {
      maxLength: 5,
    })
    .map((parts) => parts.join("")),
  fc.string({ unit: anyCharacter }),
);

const address = fc.record({
  root: nastyName,
  userId: nastyName,
  sessionId: nastyName,
  filename: nastyName,
});

type Address = typeof address extends fc.Arbitrary<infer A> ? A : never;

function keyOf({ filename, ...from }: Address): ArtifactKey | undefined {
  try {
    return artifactKey(from, filename);
  } catch (error) {
    expect(error).toMatchObject({ name: "StoreError", reason: "invalid-name" });
    return undefined;
  }
}

function meaning({ root, userId, sessionId, filename }: Address): string {
  const normalised = filename.normalize("NFKC");
  return JSON.stringify([
    root,
    userId,
    normalised.startsWith("user:") ? null : sessionId,
    normalised,
  ]);
}

describe("for every input", () => {
  propertyTest.prop([address], { numRuns: 2000 })(
    "a key is refused or has levels that are safe path components",
    (input) => {
      const key = keyOf(input);
      if (key === undefined) return;
      for (const level of directoryLevels(key)) {
        expect(level).toMatch(/^[^/\0]+$/);
        expect(level).not.toMatch(/^\.\.?$/);
        expect(Buffer.byteLength(level)).toBeLessThanOrEqual(255);
        expect(Buffer.from(level).toString()).toBe(level);
      }
    },
  );

  propertyTest.prop([address, address], { numRuns: 2000 })(
    "two artifacts have one key only when they mean the same",
    (first, second) => {
      const [a, b] = [keyOf(first), keyOf(second)];
      if (a === undefined || b === undefined) return;
      const isOneKey = JSON.stringify(a) === JSON.stringify(b);
      expect(isOneKey).toBe(meaning(first) === meaning(second));
    },
  );

  propertyTest.prop(
    [
      fc.record({ userId: nastyName, sessionId: nastyName, filename: nastyName }),
      fc.record({ userId: nastyName, sessionId: nastyName, filename: nastyName }),
      fc.constantFrom("ed_test", "ed_test/", "myorg/dev"),
    ],
    { numRuns: 2000 },
  )("two artifacts of a scope share a directory only when they mean the same", (a, b, root) => {
    const [first, second] = [
      { root, ...a },
      { root, ...b },
    ];
    const [keyA, keyB] = [keyOf(first), keyOf(second)];
    if (keyA === undefined || keyB === undefined) return;
    const isOneDirectory = directoryLevels(keyA).join("/") === directoryLevels(keyB).join("/");
    expect(isOneDirectory).toBe(meaning(first) === meaning(second));
  });
});
