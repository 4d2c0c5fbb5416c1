/**
 * What every artifact store has to do: run `describeArtifactStore` for each of them, one's own
 * included.
 */
import { once } from "node:events";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { anyCharacter, fc } from "../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import type {
  ArtifactScope,
  ArtifactSource,
  ArtifactStore,
} from "../../../worker/artifacts/store.ts";
import { describeListing } from "./listing.ts";
import {
  type Create,
  expectRefusal,
  never,
  newScope,
  readText,
  refusal,
  saveText,
  sourceOf,
  streamOf,
  text,
} from "./under-test.ts";

/** What may differ between stores. */
export interface ArtifactStoreTraits {
  /**
   * The store keeps content in this process, so that no artifact can pass through it in flat
   * memory.
   */
  readonly keepsContentInMemory?: boolean;
}

/**
 * Describes a store as vitest tests.
 *
 * `create` is called inside each test and makes a store that works; the test disposes it. Stores
 * may share what is behind them: every test has scopes of its own.
 */
export function describeArtifactStore(
  name: string,
  create: () => Promise<ArtifactStore>,
  traits: ArtifactStoreTraits = {},
): void {
  describe(`artifact store: ${name}`, () => {
    describeSavingAndOpening(create);
    describeScopes(create);
    describeNames(create);
    describeListing(create);
    describeDeleting(create);
    describeConcurrency(create);
    describeFailures(create);
    describeStreaming(create, traits);
  });
}

function describeSavingAndOpening(create: Create): void {
  test("what was saved is opened with its bytes, size and MIME type", async () => {
    await using store = await create();
    const scope = newScope();
    const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i % 256);

    const saved = await store.save(
      scope,
      "data.bin",
      sourceOf(bytes),
      { mimeType: "image/png" },
      never,
    );
    const opened = await store.open(scope, { filename: "data.bin", version: 0 }, never);

    expect(saved).toMatchObject({ version: 0, sizeBytes: 1000 });
    expect(opened).toMatchObject({
      version: 0,
      sizeBytes: 1000,
      metadata: { mimeType: "image/png" },
    });
    expect(await buffer(opened.body)).toEqual(Buffer.from(bytes));
  });

  test("an empty artifact is an artifact", async () => {
    await using store = await create();
    const scope = newScope();

    const saved = await saveText(store, scope, "empty.txt", "");
    const opened = await store.open(scope, { filename: "empty.txt", version: undefined }, never);

    expect(saved).toMatchObject({ version: 0, sizeBytes: 0 });
    expect(opened.sizeBytes).toBe(0);
    expect(await buffer(opened.body)).toHaveLength(0);
  });

  test("a MIME type comes back as it was, whatever is in it", async () => {
    await using store = await create();
    const scope = newScope();
    const mimeType = 'text/plain; title="naïve 年"';

    await store.save(scope, "a.txt", sourceOf("a"), { mimeType }, never);
    const opened = await store.open(scope, { filename: "a.txt", version: 0 }, never);
    opened.body.destroy();

    expect(opened.metadata).toEqual({ mimeType });
  });

  test("versions ascend from 0, and each keeps its content", async () => {
    await using store = await create();
    const scope = newScope();

    for (let version = 0; version < 12; version++) {
      const saved = await saveText(store, scope, "report.csv", `content ${version}`);
      expect(saved.version).toBe(version);
    }

    expect(await store.versions(scope, "report.csv", never)).toEqual([...Array(12).keys()]);
    expect(await readText(store, scope, "report.csv", 0)).toBe("content 0");
    expect(await readText(store, scope, "report.csv", 7)).toBe("content 7");
  });

  test("a reference without a version means the latest", async () => {
    await using store = await create();
    const scope = newScope();
    for (let version = 0; version < 11; version++) {
      await saveText(store, scope, "report.csv", `content ${version}`);
    }

    const opened = await store.open(scope, { filename: "report.csv", version: undefined }, never);

    expect(opened.version).toBe(10);
    expect((await buffer(opened.body)).toString()).toBe("content 10");
  });

  test("the facts of a version are those that it is opened with", async () => {
    await using store = await create();
    const scope = newScope();
    await saveText(store, scope, "report.csv", "first");
    await saveText(store, scope, "report.csv", "second one");

    for (const version of [0, 1, undefined]) {
      const reference = { filename: "report.csv", version };
      const facts = await store.stat(scope, reference, never);
      const artifact = await store.open(scope, reference, never);
      const { body, file: _file, sharedPath: _path, ...opened } = artifact;
      body.destroy();
      expect(facts).toEqual(opened);
    }
    await expectRefusal(
      store.stat(scope, { filename: "report.csv", version: 2 }, never),
      "not-found",
      "version 2",
    );
  });

  test("content that takes the number of a deleted version has another etag", async () => {
    await using store = await create();
    const scope = newScope();
    const reference = { filename: "report.csv", version: undefined };
    const saved = await saveText(store, scope, "report.csv", "first");
    const before = await store.stat(scope, reference, never);
    await store.deleteVersion(scope, "report.csv", saved, never);
    await saveText(store, scope, "report.csv", "other");

    const after = await store.stat(scope, reference, never);

    expect(after).toMatchObject({ version: 0, sizeBytes: before.sizeBytes });
    expect(after.etag).not.toBe(before.etag);
  });

  test("a missing artifact is not found, by its name and session", async () => {
    await using store = await create();
    const scope = newScope();

    await expectRefusal(
      store.open(scope, { filename: "report.csv", version: undefined }, never),
      "not-found",
      '"report.csv"',
      scope.sessionId,
    );
    expect(await store.versions(scope, "report.csv", never)).toEqual([]);
  });

  test("a missing version is not found, by its number", async () => {
    await using store = await create();
    const scope = newScope();
    await saveText(store, scope, "report.csv", "a");

    for (const version of [1, 3, -1, 0.5]) {
      await expectRefusal(
        store.open(scope, { filename: "report.csv", version }, never),
        "not-found",
        '"report.csv"',
        `version ${version}`,
      );
    }
  });

  test("a store that works says so", async () => {
    await using store = await create();

    await expect(store.check(never)).resolves.toBeInstanceOf(Array);
  });
}

function describeScopes(create: Create): void {
  test(
    "scopes, users and sessions do not see each other's artifacts",
    { tags: "promise-C5" },
    async () => {
      await using store = await create();
      const scope = newScope();
      const others = [
        { ...scope, root: `${scope.root}-b` },
        { ...scope, userId: "user-43" },
        { ...scope, sessionId: `${scope.sessionId}-b` },
      ];
      await saveText(store, scope, "report.csv", "mine");

      for (const other of others) {
        await expectRefusal(
          store.open(other, { filename: "report.csv", version: undefined }, never),
          "not-found",
        );
        expect(await saveText(store, other, "report.csv", "theirs")).toMatchObject({ version: 0 });
      }
      expect(await readText(store, scope, "report.csv")).toBe("mine");
    },
  );

  test("a user: artifact is seen in every session of the user and by nobody else", async () => {
    await using store = await create();
    const scope = newScope();
    const later = { ...scope, sessionId: `${scope.sessionId}-later` };
    const stranger = { ...scope, userId: "user-43" };
    await saveText(store, scope, "user:prefs.json", "{}");

    expect(await readText(store, later, "user:prefs.json")).toBe("{}");
    expect(await store.versions(later, "user:prefs.json", never)).toEqual([0]);
    await expectRefusal(
      store.open(stranger, { filename: "user:prefs.json", version: undefined }, never),
      "not-found",
      '"user:prefs.json"',
    );
  });

  test("a user: artifact is another one than the session's of that name", async () => {
    await using store = await create();
    const scope = newScope();
    await saveText(store, scope, "user:prefs.json", "of the user");
    await saveText(store, scope, "prefs.json", "of the session");

    expect(await readText(store, scope, "user:prefs.json")).toBe("of the user");
    expect(await readText(store, scope, "prefs.json")).toBe("of the session");
  });
}

/** Names that agents may use. */
const harmlessNames = [
  "report.csv",
  "Quarterly report (final) v2.xlsx",
  "年.csv",
  "naïve café.txt",
  "👩‍🔬 results.json",
  ".env",
  "archive.tar.gz",
  "a..b",
  "...",
  "0",
  "0.meta",
  "user",
  "users:x",
  "user:user",
  "user:user:x",
  "C:\\temp\\x",
  "%2e%2e%2fetc",
  "-rf",
  "a?b#c&d=e",
  " padded ",
  "__proto__",
  "n".repeat(255),
];

/** Values that can be neither a filename, a user nor a session. */
const dangerousNames = [
  "",
  ".",
  "..",
  "/",
  "a/b",
  "../x",
  "/etc/passwd",
  "a/",
  "nul\0byte",
  "line\nbreak",
  "escape\u001b[2J",
  "delete\u007f",
  "c1\u0085control",
  "separator\u2028",
  "\ud800",
  "tail\udc00",
  "n".repeat(256),
  "年".repeat(86),
];

/** Filenames that are dangerous besides, because of normalisation or of the prefix. */
const dangerousFilenames = [
  "user:",
  "user:..",
  "user:a/b",
  "．．",
  "‥",
  "․․",
  "a／b",
  "ｕｓｅｒ：..",
];

function describeNames(create: Create): void {
  test.for(harmlessNames)("the filename %j is kept as it is", async (filename) => {
    await using store = await create();
    const scope = newScope();

    await saveText(store, scope, filename, `content of ${filename}`);

    expect(await readText(store, scope, filename)).toBe(`content of ${filename}`);
    expect(await store.versions(scope, filename, never)).toEqual([0]);
  });

  test("a filename is found in every spelling that NFKC makes one", async () => {
    await using store = await create();
    const scope = newScope();
    await saveText(store, scope, "Bildschirmfoto 10.00\u202fUhr.png", "a");
    await saveText(store, scope, "cafe\u0301.txt", "b");

    expect(await readText(store, scope, "Bildschirmfoto 10.00 Uhr.png")).toBe("a");
    expect(await readText(store, scope, "caf\u00e9.txt")).toBe("b");
  });

  test.for([...dangerousNames, ...dangerousFilenames])(
    "the filename %j is refused everywhere",
    async (filename) => {
      await using store = await create();
      await expectRefusedEverywhere(store, newScope(), filename, "filename");
    },
  );

  test.for(dangerousNames)("a user or session %j is refused everywhere", async (value) => {
    await using store = await create();
    await expectRefusedEverywhere(store, newScope({ userId: value }), "a.txt", "user");
    await expectRefusedEverywhere(store, newScope({ sessionId: value }), "a.txt", "session");
    await expectRefusedEverywhere(store, newScope({ sessionId: value }), "user:a.txt", "session");
  });

  test("no session can be the place of the user's artifacts", async () => {
    await using store = await create();
    await expectRefusedEverywhere(store, newScope({ sessionId: "user" }), "a.txt", "session");
  });

  test.for(["", "/", "..", "../other", "a/../b", "a/./b", "a\0b", `a/${"n".repeat(256)}`])(
    "the scope %j is refused everywhere",
    async (root) => {
      await using store = await create();
      await expectRefusedEverywhere(store, newScope({ root }), "a.txt", "scope");
    },
  );

  const anyNames = "whatever names are tried, each is refused or a place of its own, %d times";
  test.for([10])(anyNames, { tags: "promise-C5" }, tryAnyNames);
  test.for([60])(anyNames, { tags: ["full", "promise-C5"] }, tryAnyNames);

  async function tryAnyNames(numRuns: number): Promise<void> {
    await using store = await create();
    await fc.assert(
      fc.asyncProperty(fc.array(address, { minLength: 2, maxLength: 8 }), async (addresses) => {
        await expectPlacesOfTheirOwn(store, newScope().root, addresses);
      }),
      { numRuns },
    );
  }
}

async function expectRefusedEverywhere(
  store: ArtifactStore,
  scope: ArtifactScope,
  filename: string,
  named: string,
): Promise<void> {
  await expectRefusal(saveText(store, scope, filename, "a"), "invalid-name", named);
  await expectRefusal(
    store.open(scope, { filename, version: undefined }, never),
    "invalid-name",
    named,
  );
  await expectRefusal(store.versions(scope, filename, never), "invalid-name", named);
  if (named !== "filename") await expectRefusal(store.names(scope, never), "invalid-name", named);
  const saved = { version: 0, sizeBytes: 1, saveId: "any" };
  await expectRefusal(store.deleteVersion(scope, filename, saved, never), "invalid-name", named);
}

interface Address {
  readonly userId: string;
  readonly sessionId: string;
  readonly filename: string;
}

/** Names made to meet: few building blocks, most of them with a meaning to a path or to a key. */
const nastyName = fc.oneof(
  fc.constantFrom("user", "a", "b", "0", "1", "0.meta", "user:a", "user:user", "user:0", ".", ".."),
  fc
    .array(fc.constantFrom("a", "b", ".", "/", "\\", ":", "user:", "0", "%2f", " ", "／", "．"), {
      minLength: 1,
      maxLength: 4,
    })
    .map((parts) => parts.join("")),
  fc.string({ unit: anyCharacter, maxLength: 6 }),
  fc.integer({ min: 250, max: 260 }).map((length) => "n".repeat(length)),
);

const address: fc.Arbitrary<Address> = fc.record({
  userId: nastyName,
  sessionId: nastyName,
  filename: nastyName,
});

/**
 * What makes two addresses mean the same artifact: nothing but normalisation and the `user:`
 * prefix.
 */
function meaning({ userId, sessionId, filename }: Address): string {
  const normalised = filename.normalize("NFKC");
  const session = normalised.startsWith("user:") ? "any session" : `session ${sessionId}`;
  return JSON.stringify([userId, session, normalised]);
}

async function expectPlacesOfTheirOwn(
  store: ArtifactStore,
  root: string,
  addresses: readonly Address[],
): Promise<void> {
  const expected = new Map<string, { address: Address; contents: string[] }>();
  for (const [index, address] of addresses.entries()) {
    const content = `content ${index}`;
    try {
      await saveText(store, { root, ...address }, address.filename, content);
    } catch (error) {
      expect(error).toMatchObject({ name: "StoreError", reason: "invalid-name" });
      continue;
    }
    const known = expected.get(meaning(address));
    if (known === undefined) expected.set(meaning(address), { address, contents: [content] });
    else known.contents.push(content);
  }
  for (const { address, contents } of expected.values()) {
    const scope = { root, ...address };
    const versions = await store.versions(scope, address.filename, never);
    expect(versions).toEqual([...contents.keys()]);
    for (const [version, content] of contents.entries()) {
      expect(await readText(store, scope, address.filename, version)).toBe(content);
    }
  }
}

function describeDeleting(create: Create): void {
  test("a deleted version is gone, and a later save has its number", async () => {
    await using store = await create();
    const scope = newScope();
    await saveText(store, scope, "a.txt", "first");
    const saved = await saveText(store, scope, "a.txt", "second");

    expect(await store.deleteVersion(scope, "a.txt", saved, never)).toBe(true);

    expect(await store.versions(scope, "a.txt", never)).toEqual([0]);
    expect(await readText(store, scope, "a.txt")).toBe("first");
    await expectRefusal(
      store.open(scope, { filename: "a.txt", version: 1 }, never),
      "not-found",
      "version 1",
    );
    expect(await saveText(store, scope, "a.txt", "third")).toMatchObject({ version: 1 });
    expect(await readText(store, scope, "a.txt", 1)).toBe("third");
  });

  test("an artifact whose only version is deleted was never there", async () => {
    await using store = await create();
    const scope = newScope();
    const saved = await saveText(store, scope, "user:a.txt", "only");

    expect(await store.deleteVersion(scope, "user:a.txt", saved, never)).toBe(true);

    expect(await store.versions(scope, "user:a.txt", never)).toEqual([]);
    await expectRefusal(
      store.open(scope, { filename: "user:a.txt", version: undefined }, never),
      "not-found",
    );
    expect(await saveText(store, scope, "user:a.txt", "next")).toMatchObject({ version: 0 });
  });

  test("versions that were saved after a deleted one stay, under their numbers", async () => {
    await using store = await create();
    const scope = newScope();
    await saveText(store, scope, "a.txt", "zero");
    const saved = await saveText(store, scope, "a.txt", "one");
    await saveText(store, scope, "a.txt", "two");

    expect(await store.deleteVersion(scope, "a.txt", saved, never)).toBe(true);

    expect(await store.versions(scope, "a.txt", never)).toEqual([0, 2]);
    expect(await readText(store, scope, "a.txt")).toBe("two");
    expect(await saveText(store, scope, "a.txt", "three")).toMatchObject({ version: 3 });
  });

  test(
    "a version that is gone is not deleted again, nor what has its number since",
    { tags: "promise-C6" },
    async () => {
      await using store = await create();
      const scope = newScope();
      const saved = await saveText(store, scope, "a.txt", "ours");
      await store.deleteVersion(scope, "a.txt", saved, never);

      expect(await store.deleteVersion(scope, "a.txt", saved, never)).toBe(false);
      await saveText(store, scope, "a.txt", "ours");
      expect(await store.deleteVersion(scope, "a.txt", saved, never)).toBe(false);

      expect(await readText(store, scope, "a.txt", 0)).toBe("ours");
    },
  );

  test("eight savers of one name of whom four delete theirs leave the other four", async () => {
    await using store = await create();
    const scope = newScope();
    const kept = new Map<number, string>();

    await Promise.all(
      Array.from({ length: 8 }, async (_, i) => {
        const saved = await saveText(store, scope, "report.csv", `saver ${i}`);
        if (i % 2 === 0) await store.deleteVersion(scope, "report.csv", saved, never);
        else kept.set(saved.version, `saver ${i}`);
      }),
    );

    expect(kept.size).toBe(4);
    const versions = await store.versions(scope, "report.csv", never);
    expect(versions).toEqual([...kept.keys()].toSorted((a, b) => a - b));
    for (const version of versions) {
      expect(await readText(store, scope, "report.csv", version)).toBe(kept.get(version));
    }
  });
}

function describeConcurrency(create: Create): void {
  async function allSucceed(savers: number): Promise<void> {
    await using store = await create();
    const scope = newScope();
    const contents = Array.from({ length: savers }, (_, i) => `saver ${i} `.repeat(1 + i * 50));

    const saved = await Promise.all(
      contents.map((content) => saveText(store, scope, "report.csv", content)),
    );

    const versions = saved.map(({ version }) => version);
    expect(versions.toSorted((a, b) => a - b)).toEqual([...Array(savers).keys()]);
    expect(await store.versions(scope, "report.csv", never)).toEqual([...Array(savers).keys()]);
    for (const [i, version] of versions.entries()) {
      expect(await readText(store, scope, "report.csv", version)).toBe(contents[i]);
    }
  }
  const title = "%d savers of one name all succeed, with versions of their own";
  test.for([8])(title, { tags: "promise-C6" }, allSucceed);
  test.for([20])(title, { tags: ["full", "promise-C6"] }, allSucceed);

  test("a source is opened afresh for every save, and every stream is used up", async () => {
    await using store = await create();
    const scope = newScope();
    const streams: Readable[] = [];
    const source: ArtifactSource = {
      sizeBytes: 7,
      open: () => {
        const stream = streamOf([Buffer.from("content")]);
        streams.push(stream);
        return stream;
      },
    };

    await Promise.all(
      Array.from({ length: 4 }, () => store.save(scope, "a.txt", source, text, never)),
    );

    expect(streams.length).toBeGreaterThanOrEqual(4);
    expect(streams.every((stream) => stream.destroyed)).toBe(true);
    for (const version of await store.versions(scope, "a.txt", never)) {
      expect(await readText(store, scope, "a.txt", version)).toBe("content");
    }
  });

  test("readers never see a version that is not finished", async () => {
    await using store = await create();
    const scope = newScope();
    const content = "0123456789".repeat(20_000);
    let isSaving = true;
    const saving = (async () => {
      for (let i = 0; i < 5; i++) await saveText(store, scope, "big.txt", content);
      isSaving = false;
    })();

    let reads = 0;
    while (isSaving) {
      await setImmediate();
      const latest = (await store.versions(scope, "big.txt", never)).at(-1);
      if (latest === undefined) continue;
      expect(await readText(store, scope, "big.txt", latest)).toBe(content);
      reads++;
    }
    await saving;

    expect(reads).toBeGreaterThan(0);
  });
}

function describeFailures(create: Create): void {
  async function expectNothingSaved(store: ArtifactStore, scope: ArtifactScope): Promise<void> {
    expect(await store.versions(scope, "a.txt", never)).toEqual([]);
    await expectRefusal(
      store.open(scope, { filename: "a.txt", version: undefined }, never),
      "not-found",
    );
    expect(await saveText(store, scope, "a.txt", "next")).toMatchObject({ version: 0 });
  }

  test.for([
    { arriving: 9, announced: 10 },
    { arriving: 0, announced: 1 },
    { arriving: 11, announced: 10 },
    { arriving: 1, announced: 0 },
    { arriving: 300_000, announced: 200_000 },
    { arriving: 200_000, announced: 300_000 },
  ])(
    "$arriving bytes are refused when $announced were announced",
    async ({ arriving, announced }) => {
      await using store = await create();
      const scope = newScope();
      const chunks = sourceOf("x".repeat(arriving));
      const source = { sizeBytes: announced, open: () => chunks.open() };

      await expectRefusal(
        store.save(scope, "a.txt", source, text, never),
        "unavailable",
        '"a.txt"',
        String(announced),
      );
      await expectNothingSaved(store, scope);
    },
  );

  test("content that cannot be read to its end leaves nothing", async () => {
    await using store = await create();
    const scope = newScope();
    const fault = new Error("the disk is on fire");
    const source = {
      sizeBytes: 10,
      open: () =>
        streamOf(
          (async function* () {
            yield Buffer.from("12345");
            throw fault;
          })(),
        ),
    };

    const error = await refusal(store.save(scope, "a.txt", source, text, never));

    expect(error).toMatchObject({ reason: "unavailable", cause: fault });
    expect(error.message).toContain('"a.txt"');
    expect(error.message).not.toContain("fire");
    await expectNothingSaved(store, scope);
  });

  test("a save that is aborted midway ends at once and leaves nothing", async () => {
    await using store = await create();
    const scope = newScope();
    const abort = new AbortController();
    const reason = new Error("the call is over");
    const stalls = [() => void stream.push(Buffer.from("12345")), () => abort.abort(reason)];
    const stream: Readable = new Readable({ highWaterMark: 1, read: () => stalls.shift()?.() });

    const save = store.save(
      scope,
      "a.txt",
      { sizeBytes: 10, open: () => stream },
      text,
      abort.signal,
    );

    await expect(save).rejects.toBe(reason);
    expect(stream.destroyed).toBe(true);
    await expectNothingSaved(store, scope);
  });

  test("nothing is done once the signal has aborted", async () => {
    await using store = await create();
    const scope = newScope();
    const reason = new Error("the call is over");
    const aborted = AbortSignal.abort(reason);
    const saved = await saveText(store, scope, "b.txt", "b");

    await expect(store.deleteVersion(scope, "b.txt", saved, aborted)).rejects.toBe(reason);
    await expect(store.save(scope, "a.txt", sourceOf("a"), text, aborted)).rejects.toBe(reason);
    await expect(store.open(scope, { filename: "b.txt", version: 0 }, aborted)).rejects.toBe(
      reason,
    );
    await expect(store.stat(scope, { filename: "b.txt", version: 0 }, aborted)).rejects.toBe(
      reason,
    );
    await expect(store.versions(scope, "b.txt", aborted)).rejects.toBe(reason);
    await expect(store.names(scope, aborted)).rejects.toBe(reason);
    await expect(store.check(aborted)).rejects.toBe(reason);
    expect(await store.versions(scope, "a.txt", never)).toEqual([]);
  });

  test("a body that its owner destroys early disturbs nobody", async () => {
    await using store = await create();
    const scope = newScope();
    const content = "x".repeat(1_000_000);
    await saveText(store, scope, "a.txt", content);

    const { body } = await store.open(scope, { filename: "a.txt", version: 0 }, never);
    for await (const chunk of body) {
      expect((chunk as Buffer).byteLength).toBeGreaterThan(0);
      break;
    }

    expect(body.destroyed).toBe(true);
    expect(await readText(store, scope, "a.txt", 0)).toBe(content);
  });
}

/** Makes a function that tells the live bytes of buffers, after a full collection. */
function createBufferMeter(): () => number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  return () => {
    collect();
    return process.memoryUsage().arrayBuffers;
  };
}

function describeStreaming(create: Create, traits: ArtifactStoreTraits): void {
  const sizeBytes = 64 * 1024 * 1024;
  const chunkBytes = 64 * 1024;
  const sampleEvery = 80;
  /**
   * Tells streaming, a few hundred kilobytes and what is not collected yet, from holding the whole.
   */
  const flatBytes = sizeBytes / 2;

  test(
    "64 MB pass through a save and a read in flat memory",
    { tags: "full" },
    async ({ skip }) => {
      skip(traits.keepsContentInMemory === true, "this store keeps content in memory");
      await using store = await create();
      const scope = newScope();
      const liveBufferBytes = createBufferMeter();
      const before = liveBufferBytes();
      let peak = 0;
      const sample = (chunkIndex: number): void => {
        if (chunkIndex % sampleEvery === 0) peak = Math.max(peak, liveBufferBytes() - before);
      };

      const source = {
        sizeBytes,
        open: () =>
          streamOf(
            (async function* () {
              for (let i = 0; i < sizeBytes / chunkBytes; i++) {
                sample(i);
                yield Buffer.alloc(chunkBytes, i);
              }
            })(),
          ),
      };
      await store.save(scope, "big.bin", source, text, never);
      const opened = await store.open(scope, { filename: "big.bin", version: 0 }, never);
      let readBytes = 0;
      let chunks = 0;
      for await (const chunk of opened.body as AsyncIterable<Buffer>) {
        expect(chunk[0]).toBe(Math.floor(readBytes / chunkBytes) % 256);
        readBytes += chunk.byteLength;
        sample(chunks++);
      }

      expect(readBytes).toBe(sizeBytes);
      expect(peak).toBeLessThan(flatBytes);
    },
  );

  test("a reader that does not read holds the store back", async () => {
    await using store = await create();
    const scope = newScope();
    await saveText(store, scope, "big.txt", "x".repeat(4_000_000));

    const { body } = await store.open(scope, { filename: "big.txt", version: 0 }, never);
    await once(body, "readable");

    expect(body.readableLength).toBeLessThanOrEqual(1_000_000);
    body.destroy();
  });
}
