/**
 * What only the S3 store does: how it writes objects, and how it corrects its clock.
 */
import { randomUUID } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { startFakeS3 } from "../../../harness/fakes/s3/server.ts";
import {
  newScope,
  never,
  readText,
  saveText,
  sourceOf,
  text,
} from "../../conformance/artifacts/under-test.ts";
import { s3Store, useFakeS3 } from "../../support/s3.ts";

const bucketName = "artifacts";
const server = useFakeS3({ buckets: [bucketName] });

describe.for([
  ["SSE-S3", { encryption: "AES256" }, { "x-amz-server-side-encryption": "AES256" }],
  [
    "SSE-KMS with the account's key",
    { encryption: "aws:kms" },
    { "x-amz-server-side-encryption": "aws:kms" },
  ],
  [
    "SSE-KMS with a key",
    { encryption: "aws:kms", kmsKeyId: "key-1" },
    {
      "x-amz-server-side-encryption": "aws:kms",
      "x-amz-server-side-encryption-aws-kms-key-id": "key-1",
    },
  ],
  ["a storage class", { storageClass: "STANDARD_IA" }, { "x-amz-storage-class": "STANDARD_IA" }],
  ["nothing", {}, {}],
] as const)("objects have %s", ([, how, headers]) => {
  test.for([10, 6 * 1024 * 1024])("of %d bytes, where the operator says so", async (sizeBytes) => {
    await using store = s3Store(server().endpoint, bucketName, how);
    const scope = newScope();
    await store.save(scope, "a", sourceOf(Buffer.alloc(sizeBytes)), text, never);
    const { objects } = server().bucket(bucketName);
    const [object] = [...objects].filter(([key]) => key.startsWith(scope.root));
    const kept = Object.entries(object![1].headers);
    const ofStorage = kept.filter(([name]) => /^x-amz-(?!meta-)/.test(name));
    expect(Object.fromEntries(ofStorage)).toEqual(headers);
  });

  test("and so have marks, whose encryption a policy may require", async () => {
    await using store = s3Store(server().endpoint, bucketName, how);
    const name = `${randomUUID().replaceAll("-", "")}.started`;
    await store.marks!.create(name, Buffer.from("answer"), never);
    const mark = server().bucket(bucketName).get(`.str-claims/${name}`);
    const encrypted = Object.entries(headers).filter(([header]) => header.includes("encryption"));
    expect(mark.headers).toMatchObject(Object.fromEntries(encrypted));
  });
});

const isCorrected = async (minutes: number): Promise<void> => {
  const clockOffsetMs = minutes * 60_000;
  await using skewed = await startFakeS3({ buckets: [bucketName], clockOffsetMs });
  await using store = s3Store(skewed.endpoint, bucketName);
  const scope = newScope();
  await saveText(store, scope, "a.txt", "kept");
  expect(await readText(store, scope, "a.txt")).toBe("kept");
  await expect(store.check(never)).resolves.toEqual([]);
};
const skew = "a clock that differs by %d minutes is corrected";
test.for([16])(skew, isCorrected);
test.for([-61, -16, 61])(skew, { tags: "full" }, isCorrected);

test("what was damaged on its way once is read again", async () => {
  await using store = s3Store(server().endpoint, bucketName);
  const scope = newScope();
  await saveText(store, scope, "a.txt", "content");
  const rule = server().fault({ operation: "GetObject", fault: { kind: "damage answer" } });
  onTestFinished(() => rule[Symbol.dispose]());
  const { body } = await store.open(scope, { filename: "a.txt", version: 0 }, never);
  expect((await buffer(body)).toString()).toBe("content");
});
