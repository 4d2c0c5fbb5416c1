/**
 * The S3 store, held to what every store of objects has to do, on a server that fails on command.
 */
import { onTestFinished } from "vitest";
import type { S3Operation } from "../../../harness/fakes/s3/request.ts";
import { startFakeS3 } from "../../../harness/fakes/s3/server.ts";
import type { ArtifactStore } from "../../../worker/artifacts/store.ts";
import { s3Store, useFakeS3 } from "../../support/s3.ts";
import type { BrokenAccess, ObjectRequest } from "./object-store/failures.ts";
import { keyOf } from "./object-store/seeded.ts";
import { describeObjectStore } from "./object-store.ts";

const bucket = "kept-objects";
const server = useFakeS3({ buckets: [bucket] });

const operations: Readonly<Record<ObjectRequest, S3Operation>> = {
  list: "ListObjectsV2",
  open: "GetObject",
  read: "GetObject",
  write: "PutObject",
  part: "UploadPart",
  complete: "CompleteMultipartUpload",
  delete: "DeleteObject",
};

/** What a saver that asks for no condition writes. */
const unconditional = { ifNoneMatch: undefined, ifMatch: undefined };

async function createBroken(how: BrokenAccess): Promise<ArtifactStore> {
  const { endpoint, accessKeyId } = server();
  if (how === "missing bucket") return s3Store(endpoint, "missing-bucket");
  if (how === "wrong credentials") {
    const credentials = { accessKeyId, secretAccessKey: "wrong-secret-key" };
    return s3Store(endpoint, bucket, { credentials });
  }
  const options = { buckets: [bucket], clockOffsetMs: 16 * 60_000, hidesTime: true };
  const other = await startFakeS3(options);
  const store = s3Store(other.endpoint, bucket);
  if (how === "unreachable server") await other[Symbol.asyncDispose]();
  else onTestFinished(() => other[Symbol.asyncDispose]());
  return store;
}

describeObjectStore("s3", {
  create: () => Promise.resolve(s3Store(server().endpoint, bucket)),
  seed: (versions) => {
    for (const { content, ...version } of versions)
      server().bucket(bucket).put(keyOf(version), Buffer.from(content), {}, unconditional);
    return Promise.resolve();
  },
  failures: {
    createBroken,
    fault: (request, fault, times) =>
      server().fault({ operation: operations[request], fault, times }),
    kept: (prefix) => {
      const { objects, uploads } = server().bucket(bucket);
      const keys = [...objects.keys(), ...Array.from(uploads.values(), ({ key }) => key)];
      return keys.filter((key) => key.startsWith(prefix));
    },
    hidden: () => [bucket, "127.0.0.1", "missing-bucket", "fake-", "wrong-secret", "us-east-1"],
  },
});
