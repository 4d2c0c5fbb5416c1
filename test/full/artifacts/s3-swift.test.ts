/**
 * The S3 store on OpenStack Swift, which this project did not write: it checks conditions before
 * it writes, so that two savers at once both succeed, and knows no newer checksums.
 *
 * @module-tag full
 */
import { expect, test } from "vitest";
import { describeArtifactStore } from "../../conformance/artifacts/artifact-store.ts";
import { describeObjectStore } from "../../conformance/artifacts/object-store.ts";
import { useS3Server } from "../../support/s3-servers/server.ts";
import { swift } from "../../support/s3-servers/swift.ts";

const server = useS3Server(swift);

describeArtifactStore("s3 on swift", () =>
  server().artifacts.checkedStore({ checksums: "required" }),
);

describeObjectStore("s3 on swift", {
  create: () => server().artifacts.checkedStore({ checksums: "required" }),
  seed: (versions) => server().artifacts.seed(versions),
  listed: 1_050,
});

test("the check tells what is missing, and there are no marks", async () => {
  await using store = server().artifacts.store();
  const limits = await store.check(new AbortController().signal);
  expect(limits).toEqual([expect.stringContaining("If-None-Match")]);
  expect(store.marks).toBeUndefined();
});
