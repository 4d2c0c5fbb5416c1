import { describe, expect, test } from "vitest";
import { NameList } from "../../../worker/artifacts/names.ts";
import { artifactKey, artifactLevels } from "../../../worker/artifacts/scope.ts";
import { scope } from "./fixtures.ts";

const [session, user] = artifactLevels(scope);

describe("a list of names", () => {
  test("has every name as the filename that leads to it", () => {
    const list = new NameList(scope);
    for (const name of ["b.txt", "users", "年.csv"]) list.add(session, name);
    for (const name of ["a.txt", "user:b"]) list.add(user, name);

    const names = list.sorted();

    expect(names).toEqual(["b.txt", "user:a.txt", "user:user:b", "users", "年.csv"]);
    expect(names.map((name) => artifactKey(scope, name).name)).toEqual([
      "b.txt",
      "a.txt",
      "user:b",
      "users",
      "年.csv",
    ]);
  });

  test.for(["", "..", "a/b", "user:a.txt", "ﬁle.txt", "a\u0007", ".str-claims"])(
    "leaves out %j, which no filename of the session means",
    (name) => {
      const list = new NameList(scope);
      list.add(session, name);
      expect(list.sorted()).toEqual([]);
    },
  );

  test("has a bound, which both levels share", () => {
    const list = new NameList(scope, 2);
    list.add(session, "a");
    list.add(session, "..");
    list.add(user, "b");
    expect(() => list.add(user, "c")).toThrow(
      `The artifacts of session ${scope.sessionId} could not be listed: it has more than 2.`,
    );
  });
});
