/**
 * The S3 store on moto, which this project did not write.
 *
 * @module-tag full
 */
import {
  GetBucketLifecycleConfigurationCommand,
  PutBucketLifecycleConfigurationCommand,
  type PutBucketLifecycleConfigurationCommandInput,
  PutBucketVersioningCommand,
} from "@aws-sdk/client-s3";
import { expect, test } from "vitest";
import { never } from "../../conformance/artifacts/under-test.ts";
import { csv, readText, scope, sourceOf } from "../../unit/artifacts/fixtures.ts";
import { lifecycleDocuments } from "../../support/s3-servers/lifecycle.ts";
import { describeArtifactStore } from "../../conformance/artifacts/artifact-store.ts";
import { describeMarkStore } from "../../conformance/artifacts/mark-store.ts";
import { describeObjectStore } from "../../conformance/artifacts/object-store.ts";
import { moto } from "../../support/s3-servers/moto.ts";
import { useS3Server } from "../../support/s3-servers/server.ts";

const server = useS3Server(moto);

describeArtifactStore("s3 on moto", () => Promise.resolve(server().artifacts.store()));

describeObjectStore("s3 on moto", {
  create: () => Promise.resolve(server().artifacts.store()),
  seed: (versions) => server().artifacts.seed(versions),
  listed: 1_050,
});

describeMarkStore("s3 on moto", () => server().twoViewsOfMarks());

test("the documented lifecycle rules are taken, and are then the bucket's", async () => {
  const { client } = server().artifacts;
  const Bucket = "artifacts";
  for (const document of lifecycleDocuments().s3) {
    const LifecycleConfiguration =
      document as PutBucketLifecycleConfigurationCommandInput["LifecycleConfiguration"];
    const put = { Bucket, LifecycleConfiguration };
    await client.send(new PutBucketLifecycleConfigurationCommand(put));
    const { Rules } = await client.send(new GetBucketLifecycleConfigurationCommand({ Bucket }));
    expect({ Rules }).toMatchObject(document);
  }
});

test("a bucket with versioning keeps numbers as others do", async () => {
  const bucket = server().bucket("versioned");
  await bucket.create();
  const VersioningConfiguration = { Status: "Enabled" } as const;
  const versioning = { Bucket: "versioned", VersioningConfiguration };
  await bucket.client.send(new PutBucketVersioningCommand(versioning));
  const store = bucket.store();
  await store.save(scope, "a.csv", sourceOf("first"), csv, never);
  const second = await store.save(scope, "a.csv", sourceOf("second"), csv, never);
  expect(await store.deleteVersion(scope, "a.csv", second, never)).toBe(true);
  expect(await store.versions(scope, "a.csv", never)).toEqual([0]);
  const again = await store.save(scope, "a.csv", sourceOf("again"), csv, never);
  expect(again.version).toBe(1);
  expect(await readText(store, "a.csv", 1)).toBe("again");
});
