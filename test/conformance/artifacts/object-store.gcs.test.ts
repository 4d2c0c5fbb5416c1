/**
 * The store of Google Cloud Storage, held to what every store of objects has to do, on a server
 * that fails on command. The ordinary run holds that of S3 to it, and both to the contract of every
 * store.
 *
 * @module-tag full
 */
import { onTestFinished } from "vitest";
import type { GcsOperation } from "../../../harness/fakes/gcs/request.ts";
import { startFakeGcs } from "../../../harness/fakes/gcs/server.ts";
import type { ArtifactStore } from "../../../worker/artifacts/store.ts";
import { gcsStore, useFakeGcs, useGcsCredentials } from "../../support/gcs.ts";
import type { BrokenAccess, ObjectRequest } from "./object-store/failures.ts";
import { keyOf } from "./object-store/seeded.ts";
import { describeObjectStore } from "./object-store.ts";

const bucket = "kept-objects";
const server = useFakeGcs({ buckets: [bucket] });

const operations: Readonly<Record<ObjectRequest, GcsOperation>> = {
  list: "objects.list",
  open: "objects.download",
  read: "objects.download",
  write: "objects.insert",
  part: "uploads.put",
  complete: "uploads.complete",
  delete: "objects.delete",
};

async function createBroken(how: BrokenAccess): Promise<ArtifactStore> {
  const { endpoint, credentialsFile } = server();
  if (how === "missing bucket") return gcsStore(endpoint, "missing-bucket");
  const clockOffsetMs = how === "skewed clock" ? -16 * 60_000 : 0;
  const other = await startFakeGcs({ buckets: [bucket], clockOffsetMs });
  if (how === "unreachable server") {
    const store = gcsStore(other.endpoint, bucket);
    await other[Symbol.asyncDispose]();
    return store;
  }
  onTestFinished(() => other[Symbol.asyncDispose]());
  onTestFinished(() => useGcsCredentials(credentialsFile));
  useGcsCredentials(how === "skewed clock" ? other.credentialsFile : other.serviceAccountFile);
  return gcsStore(how === "skewed clock" ? other.endpoint : endpoint, bucket);
}

describeObjectStore("gcs", {
  create: () => Promise.resolve(gcsStore(server().endpoint, bucket)),
  seed: (versions) => {
    for (const { content, ...version } of versions)
      server()
        .bucket(bucket)
        .put({ name: keyOf(version) }, Buffer.from(content));
    return Promise.resolve();
  },
  failures: {
    createBroken,
    fault: (request, fault, times) =>
      server().fault({
        operation: operations[request],
        fault,
        ...(times !== undefined && { times }),
      }),
    kept: (prefix) => {
      const { objects, uploads } = server().bucket(bucket);
      const keys = [...objects.keys(), ...Array.from(uploads.values(), ({ facts }) => facts.name)];
      return keys.filter((key) => key.startsWith(prefix));
    },
    hidden: () => [bucket, "127.0.0.1", "missing-bucket", "fake-"],
  },
});
