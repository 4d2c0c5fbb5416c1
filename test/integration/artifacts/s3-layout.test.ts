/**
 * The S3 store and agents of the original in one bucket, by what the original was seen to write and
 * by its rules to read: `test/full/artifacts/original-services.test.ts` has it do so itself.
 */
import { randomUUID } from "node:crypto";
import { buffer } from "node:stream/consumers";
import {
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";
import { describe, expect, onTestFinished, test } from "vitest";
import type { ArtifactScope, ArtifactStore } from "../../../worker/artifacts/store.ts";
import { s3Store, useFakeS3 } from "../../support/s3.ts";
import { csv, never, readText, sourceOf } from "../../unit/artifacts/fixtures.ts";

const Bucket = "artifacts";
const server = useFakeS3({ buckets: [Bucket] });

function openStore(): ArtifactStore {
  const store = s3Store(server().endpoint, Bucket);
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

function openClient(): S3Client {
  const client = new S3Client({
    region: server().region,
    endpoint: server().endpoint,
    forcePathStyle: true,
  });
  onTestFinished(() => client.destroy());
  return client;
}

function newScope(root: string): ArtifactScope {
  return { root, userId: `年-${randomUUID()}`, sessionId: "web-1" };
}

/** Scope, filename, and what the original makes of them: key and name in the metadata. */
const places = [
  ["ed_test", "report.csv", "ed_test/USER/web-1/report.csv", "report.csv"],
  ["ed_test/", "report.csv", "ed_test/USER/web-1/report.csv", "report.csv"],
  ["/ed_test/", "report.csv", "ed_test/USER/web-1/report.csv", "report.csv"],
  ["ed_test", "a b+c.csv", "ed_test/USER/web-1/a b+c.csv", "a b+c.csv"],
  ["ed_test", "年é👩.csv", "ed_test/USER/web-1/年é👩.csv", "\\u5e74\\xe9\\U0001f469.csv"],
  ["ed_test", "a\u202fb.csv", "ed_test/USER/web-1/a b.csv", "a b.csv"],
  ["ed_test", "user:prefs.csv", "ed_test/USER/user/prefs.csv", "user:prefs.csv"],
  ["myorg/dev", "report.csv", "myorg/dev/USER/web-1/report.csv", "report.csv"],
] as const;

function metadataOf(originalFilename: string, { userId }: ArtifactScope, version: number) {
  return {
    original_filename: originalFilename,
    user_id: userId.replace("年", "\\u5e74"),
    session_id: "web-1",
    version: String(version),
  };
}

describe("an object that the original saved is listed, read and typed", () => {
  test.for(places)("in scope %j for the filename %j", async ([root, filename, key, original]) => {
    const [store, client, scope] = [openStore(), openClient(), newScope(root)];
    const place = key.replace("USER", scope.userId);
    for (const version of [0, 1, 10]) {
      const Metadata = metadataOf(original, scope, version);
      const Body = `content ${version}`;
      const object = { Bucket, Key: `${place}/${version}`, Body, ContentType: "text/csv" };
      await client.send(new PutObjectCommand({ ...object, Metadata }));
    }
    const foreign = { Bucket, Key: `${place}/notes`, Body: "no version" };
    await client.send(new PutObjectCommand(foreign));

    expect(await store.names(scope, never)).toEqual([filename.normalize("NFKC")]);
    expect(await store.versions(scope, filename, never)).toEqual([0, 1, 10]);
    expect(await readText(store, filename, 1, scope)).toBe("content 1");
    const latest = await store.open(scope, { filename, version: undefined }, never);
    expect(latest).toMatchObject({ version: 10, metadata: { mimeType: "text/csv" } });
    expect((await buffer(latest.body)).toString()).toBe("content 10");
    expect(await store.save(scope, filename, sourceOf("ours"), csv, never)).toMatchObject({
      version: 11,
    });
  });
});

describe("an object that the store saves is listed, read and typed by the original's rules", () => {
  test.for(places)("in scope %j for the filename %j", async ([root, filename, key, original]) => {
    const [store, client, scope] = [openStore(), openClient(), newScope(root)];
    const place = key.replace("USER", scope.userId);
    await store.save(scope, filename, sourceOf("first"), csv, never);
    await store.save(scope, filename, sourceOf("second"), csv, never);

    const list = new ListObjectsV2Command({
      Bucket,
      Prefix: place.slice(0, place.lastIndexOf("/") + 1),
    });
    const { Contents = [] } = await client.send(list);
    const keys = Contents.map(({ Key = "" }) => Key);
    expect(keys).toEqual([`${place}/0`, `${place}/1`]);
    // Its positions are those of a scope of one level: it finds names below no other.
    if (!root.includes("/dev")) {
      const parts = keys.map((key) => key.split("/"));
      expect(parts.map((part) => [part.length, part[3], part[4]])).toEqual([
        [5, key.split("/")[3], "0"],
        [5, key.split("/")[3], "1"],
      ]);
    }
    const get = new GetObjectCommand({ Bucket, Key: `${place}/1` });
    const { Body, ContentType, Metadata } = await client.send(get);
    expect(await Body?.transformToString()).toBe("second");
    expect(ContentType).toBe("text/csv");
    expect(Metadata).toEqual({
      ...metadataOf(original, scope, 1),
      // The one thing that is ours.
      str_save: expect.any(String),
    });
  });
});
