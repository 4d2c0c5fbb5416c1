/**
 * The marks of the S3 store, held to the contract of all marks.
 */
import { s3Store, useFakeS3 } from "../../support/s3.ts";
import { describeMarkStore } from "./mark-store.ts";

/** A bucket for each pair of views. */
const buckets = Array.from({ length: 20 }, (_, index) => `marks-${index}`);
const unused = [...buckets];
const server = useFakeS3({ buckets });

describeMarkStore("s3", () => {
  const bucket = unused.pop()!;
  const view = () => s3Store(server().endpoint, bucket).marks!;
  return Promise.resolve([view(), view()]);
});
