/**
 * The store of Google Cloud Storage and agents of the original in one bucket, by what the original
 * was seen to write and by its rules to read: `test/full/artifacts/original-services.test.ts` has
 * it do so itself.
 */
import { randomUUID } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import type { ArtifactScope, ArtifactStore } from "../../../worker/artifacts/store.ts";
import { gcsStore, useFakeGcs } from "../../support/gcs.ts";
import { csv, never, readText, sourceOf } from "../../unit/artifacts/fixtures.ts";

const bucketName = "artifacts";
const server = useFakeGcs({ buckets: [bucketName] });

function openStore(): ArtifactStore {
  const store = gcsStore(server().endpoint, bucketName);
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

function newScope(root: string): ArtifactScope {
  return { root, userId: `年-${randomUUID()}`, sessionId: "web-1" };
}

/** Scope, filename, and the name that the original gives the object. */
const places = [
  ["ed_test", "report.csv", "ed_test/USER/web-1/report.csv"],
  ["ed_test/", "report.csv", "ed_test//USER/web-1/report.csv"],
  ["/ed_test/", "report.csv", "/ed_test//USER/web-1/report.csv"],
  ["ed_test", "a b+c#%2f?.csv", "ed_test/USER/web-1/a b+c#%2f?.csv"],
  ["ed_test", "年é👩.csv", "ed_test/USER/web-1/年é👩.csv"],
  ["ed_test", "user:prefs.csv", "ed_test/USER/user/user:prefs.csv"],
  ["myorg/dev", "report.csv", "myorg/dev/USER/web-1/report.csv"],
] as const;

describe("an object that the original saved is listed, read and typed", () => {
  test.for(places)("in scope %j for the filename %j", async ([root, filename, path]) => {
    const [store, scope] = [openStore(), newScope(root)];
    const place = path.replace("USER", scope.userId);
    const bucket = server().bucket(bucketName);
    for (const version of [0, 1, 10]) {
      const facts = { name: `${place}/${version}`, contentType: "text/csv" };
      bucket.put(facts, Buffer.from(`content ${version}`));
    }
    bucket.put({ name: `${place}/notes` }, Buffer.from("no version"));
    // The original takes names with slashes.
    bucket.put({ name: `${place}/deeper/3` }, Buffer.from("of another artifact"));

    expect(await store.names(scope, never)).toEqual([filename]);
    expect(await store.versions(scope, filename, never)).toEqual([0, 1, 10]);
    expect(await readText(store, filename, 1, scope)).toBe("content 1");
    const latest = await store.open(scope, { filename, version: undefined }, never);
    expect(latest).toMatchObject({ version: 10, metadata: { mimeType: "text/csv" } });
    expect((await buffer(latest.body)).toString()).toBe("content 10");
    expect(await store.save(scope, filename, sourceOf("ours"), csv, never)).toMatchObject({
      version: 11,
    });
  });

  test("as text, which has a mark of the original's", async () => {
    const [store, scope] = [openStore(), newScope("ed_test")];
    const name = `ed_test/${scope.userId}/web-1/notes.txt/0`;
    const facts = { name, contentType: "text/plain", metadata: { adkIsText: "true" } };
    server().bucket(bucketName).put(facts, Buffer.from("a note"));
    const opened = await store.open(scope, { filename: "notes.txt", version: 0 }, never);
    expect(opened.metadata).toEqual({ mimeType: "text/plain" });
    expect((await buffer(opened.body)).toString()).toBe("a note");
  });

  test("under a name that it does not normalise, when asked for by that name", async () => {
    const [store, scope, filename] = [openStore(), newScope("ed_test"), "10.00\u202fUhr.png"];
    const name = `ed_test/${scope.userId}/web-1/${filename}/4`;
    server().bucket(bucketName).put({ name }, Buffer.from("a picture"));
    expect(await store.versions(scope, filename, never)).toEqual([4]);
    expect(await readText(store, filename, 4, scope)).toBe("a picture");
    expect(await readText(store, filename, undefined, scope)).toBe("a picture");
    const normalised = { filename: filename.normalize("NFKC"), version: undefined };
    await expect(store.stat(scope, normalised, never)).rejects.toThrow("not found");
  });

  test("beside objects of the user's level that are no artifacts of the user", async () => {
    const [store, scope] = [openStore(), newScope("ed_test")];
    const name = `ed_test/${scope.userId}/user/prefs.csv/0`;
    server().bucket(bucketName).put({ name }, Buffer.from("of no use"));
    expect(await store.names(scope, never)).toEqual([]);
  });
});

describe("an object that the store saves is what the original lists, loads and types", () => {
  test.for(places)("in scope %j for the filename %j", async ([root, filename, path]) => {
    const [store, scope] = [openStore(), newScope(root)];
    const place = path.replace("USER", scope.userId);
    await store.save(scope, filename, sourceOf("first"), csv, never);
    await store.save(scope, filename, sourceOf("second"), csv, never);

    const { objects } = server().bucket(bucketName);
    const names = [...objects.keys()].filter((name) => name.startsWith(`${place}/`));
    expect(names).toEqual([`${place}/0`, `${place}/1`]);
    const { content, facts } = objects.get(`${place}/1`)!;
    expect(content.toString()).toBe("second");
    expect(facts.contentType).toBe("text/csv");
    // The one thing that is ours: without a mark of text, agents load bytes with their type.
    expect(facts.metadata).toEqual({ str_save: expect.any(String) });
  });
});
