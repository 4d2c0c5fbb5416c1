/**
 * What every artifact store has to do when the names of a session are listed.
 */
import { expect, test } from "vitest";
import { type Create, never, newScope, readText, saveText } from "./under-test.ts";

/** Names whose order, encoding or meaning a store could get wrong. */
const listedNames = [
  "B.txt",
  "a b+c.txt",
  "a.txt",
  "a\\..\\b",
  "a?b#c&d=e%2f",
  "user",
  "user:user:x",
  "年.csv",
  "👩‍🔬 results.json",
];

export function describeListing(create: Create): void {
  test("a session that nobody used has no names", async () => {
    await using store = await create();

    expect(await store.names(newScope(), never)).toEqual([]);
  });

  test("the names of a session and of its user are listed once each, sorted", async () => {
    await using store = await create();
    const scope = newScope();
    for (const name of [...listedNames, ...listedNames, "user:prefs.json", "prefs.json"])
      await saveText(store, scope, name, `content of ${name}`);

    const names = await store.names(scope, never);

    expect(names).toEqual([...listedNames, "prefs.json", "user:prefs.json"].toSorted());
    for (const name of names) {
      if (!name.endsWith("prefs.json")) {
        expect(await readText(store, scope, name)).toBe(`content of ${name}`);
      }
    }
  });

  test.for(["%s", "%s/", "/%s/dev", "acme/%s/dev/"])(
    "names are listed in the scope %j too",
    async (pattern) => {
      await using store = await create();
      const { root: unique, ...rest } = newScope();
      const scope = { root: pattern.replace("%s", unique), ...rest, userId: `user-${unique}` };
      await saveText(store, scope, "a.txt", "a");
      await saveText(store, scope, "user:b.txt", "b");

      expect(await store.names(scope, never)).toEqual(["a.txt", "user:b.txt"]);
    },
  );

  test("other sessions, users and scopes have names of their own", async () => {
    await using store = await create();
    const scope = newScope();
    const others = [
      { ...scope, sessionId: `${scope.sessionId}-2` },
      { ...scope, userId: `${scope.userId}-2` },
      { ...scope, root: `${scope.root}-2` },
    ];
    await saveText(store, scope, "a.txt", "a");
    await saveText(store, scope, "user:b.txt", "b");

    expect(await store.names(others[0]!, never)).toEqual(["user:b.txt"]);
    expect(await store.names(others[1]!, never)).toEqual([]);
    expect(await store.names(others[2]!, never)).toEqual([]);
  });

  test("a name whose versions are deleted is not listed", async () => {
    await using store = await create();
    const scope = newScope();
    const [only, kept] = [await saveText(store, scope, "a.txt", "a"), "b.txt"];
    await saveText(store, scope, kept, "first");
    const second = await saveText(store, scope, kept, "second");

    await store.deleteVersion(scope, "a.txt", only, never);
    await store.deleteVersion(scope, kept, second, never);

    expect(await store.names(scope, never)).toEqual([kept]);
  });
}
