/**
 * The marks of the store of Google Cloud Storage, held to the contract of all marks.
 */
import { gcsStore, useFakeGcs } from "../../support/gcs.ts";
import { describeMarkStore } from "./mark-store.ts";

/** A bucket for each pair of views. */
const buckets = Array.from({ length: 20 }, (_, index) => `marks-${index}`);
const unused = [...buckets];
const server = useFakeGcs({ buckets });

describeMarkStore("gcs", () => {
  const bucket = unused.pop()!;
  const view = () => gcsStore(server().endpoint, bucket).marks!;
  return Promise.resolve([view(), view()]);
});
