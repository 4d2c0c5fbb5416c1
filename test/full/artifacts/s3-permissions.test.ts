/**
 * The policy of docs/artifacts.md, for a user of a server that this project did not write: it
 * suffices, and no action of it is too much.
 *
 * @module-tag full
 */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { PutBucketPolicyCommand } from "@aws-sdk/client-s3";
import { describe, expect, test } from "vitest";
import type { ArtifactStore } from "../../../worker/artifacts/store.ts";
import {
  never,
  newScope,
  readText,
  refusal,
  saveText,
  streamOf,
  text,
} from "../../conformance/artifacts/under-test.ts";
import type { S3Bucket } from "../../support/s3-servers/bucket.ts";
import { useS3Server } from "../../support/s3-servers/server.ts";
import { installVersitygw, versitygw } from "../../support/s3-servers/versitygw.ts";

const run = promisify(execFile);
const server = useS3Server(versitygw);

interface Policy {
  readonly Version: string;
  readonly Statement: readonly {
    readonly Effect: string;
    readonly Action: string | readonly string[];
    readonly Resource: string;
  }[];
}

const page = readFileSync(new URL("../../../docs/artifacts.md", import.meta.url), "utf8");
const [, documented = ""] = /```json\n(\{\n {2}"Version": "2012-10-17".*?)```/s.exec(page) ?? [];
const policy = JSON.parse(documented) as Policy;
const actions = policy.Statement.flatMap(({ Action }) => Action);

/** A store of a new user, with a policy of which some actions are left out. */
async function storeWith(leftOut: readonly string[] = []) {
  const [bucket, accessKeyId] = [`bucket-${randomUUID()}`, `user-${randomUUID()}`];
  const credentials = { accessKeyId, secretAccessKey: randomUUID() };
  await createUser(credentials);
  const place = server().bucket(bucket);
  await place.create();
  const statements = policy.Statement.map(({ Effect, Action, Resource }) => ({
    Effect,
    Action: [Action].flat().filter((action) => !leftOut.includes(action)),
    Resource: Resource.replace("my-artifacts", bucket),
    // In AWS the policy is the user's, so that it names none.
    Principal: { AWS: accessKeyId },
  })).filter(({ Action }) => Action.length > 0);
  const Policy = JSON.stringify({ ...policy, Statement: statements });
  await place.client.send(new PutBucketPolicyCommand({ Bucket: bucket, Policy }));
  return { place, credentials, store: place.store({ credentials }) };
}

async function createUser(user: { accessKeyId: string; secretAccessKey: string }): Promise<void> {
  const { endpoint, credentials } = server();
  const account = ["--access", credentials.accessKeyId, "--secret", credentials.secretAccessKey];
  const { accessKeyId, secretAccessKey } = user;
  const created = ["--access", accessKeyId, "--secret", secretAccessKey, "--role", "user"];
  const argv = ["admin", ...account, "--endpoint-url", endpoint, "create-user", ...created];
  await run(await installVersitygw(), argv);
}

/** A save that fails after its first part, and how many uploads stay. */
async function uploadsAfterFailure(store: ArtifactStore, bucket: S3Bucket): Promise<number> {
  const source = {
    sizeBytes: 20 * 1024 * 1024,
    open: () =>
      streamOf(
        (function* () {
          yield Buffer.alloc(6 * 1024 * 1024);
          throw new Error("the source is gone");
        })(),
      ),
  };
  await refusal(store.save(newScope(), "a.bin", source, text, never));
  return (await bucket.uploads()).length;
}

test("with the policy of the documents, all operations and marks succeed", async () => {
  const { store, place } = await storeWith();
  await using _owned = store;
  const scope = newScope();
  expect(await store.check(never)).toEqual([]);
  const small = await saveText(store, scope, "a.txt", "small");
  const large = "large".repeat(2 * 1024 * 1024);
  await saveText(store, scope, "user:b.txt", large);
  expect(await readText(store, scope, "a.txt")).toBe("small");
  expect(await readText(store, scope, "user:b.txt")).toBe(large);
  expect(await store.names(scope, never)).toEqual(["a.txt", "user:b.txt"]);
  expect(await store.deleteVersion(scope, "a.txt", small, never)).toBe(true);
  expect(await uploadsAfterFailure(store, place)).toBe(0);
  const { marks } = store;
  const name = `${"0".repeat(64)}.1`;
  expect(await marks!.create(name, Buffer.from("kept"), never)).toBe(true);
  await marks!.touch(name, never);
  expect(await marks!.read(name, never)).toBeDefined();
  await marks!.sweep(() => -60_000, never);
  expect(await marks!.read(name, never)).toBeUndefined();
});

/** What fails without an action. */
const needs: Readonly<Record<string, (store: ArtifactStore) => Promise<unknown>>> = {
  "s3:ListBucket": (store) => store.versions(newScope(), "a.txt", never),
  "s3:GetObject": async (store) => {
    const scope = newScope();
    await saveText(store, scope, "a.txt", "a");
    await readText(store, scope, "a.txt");
  },
  "s3:PutObject": (store) => saveText(store, newScope(), "a.txt", "a"),
  "s3:DeleteObject": async (store) => {
    const scope = newScope();
    const saved = await saveText(store, scope, "a.txt", "a");
    await store.deleteVersion(scope, "a.txt", saved, never);
  },
};

describe("the policy of the documents", () => {
  test("has no action but those that are tried", () => {
    expect(actions.toSorted()).toEqual([...Object.keys(needs), "s3:AbortMultipartUpload"].sort());
  });

  test.for(Object.entries(needs))("does not suffice without %s", async ([action, use]) => {
    const { store } = await storeWith([action]);
    await using _owned = store;
    const error = await refusal(use(store));
    expect(error.message).toContain("the artifact store denies access");
  });

  test("leaves parts of a save that fails without s3:AbortMultipartUpload", async () => {
    const { store, place } = await storeWith(["s3:AbortMultipartUpload"]);
    await using _owned = store;
    expect(await uploadsAfterFailure(store, place)).toBe(1);
  });

  test("gives no access to other buckets", async () => {
    const [{ credentials }, other] = [await storeWith(), server().bucket(`bucket-${randomUUID()}`)];
    await other.create();
    await using store = other.store({ credentials });
    const scope = newScope();
    for (const attempt of [
      () => saveText(store, scope, "a.txt", "a"),
      () => readText(store, scope, "a.txt", 0),
      () => store.versions(scope, "a.txt", never),
      () => store.check(never),
    ]) {
      const error = await refusal(attempt());
      expect(error.message).toContain("the artifact store denies access");
    }
  });
});
