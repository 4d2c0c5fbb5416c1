/**
 * A bucket of a server that this project did not write, for the suites of the stores.
 */
import { type Bucket, Storage } from "@google-cloud/storage";
import { mapConcurrently } from "../../worker/support/concurrent.ts";
import { type SeededVersion, keyOf } from "../conformance/artifacts/object-store/seeded.ts";
import { never } from "../conformance/artifacts/under-test.ts";

/** Requests at the same time. */
const parallel = 16;

/** A bucket by the SDK's own methods: Google's, or without credentials that of an endpoint. */
export class GcsTestBucket {
  readonly #bucket: Bucket;

  constructor(name: string, apiEndpoint?: string) {
    const place = apiEndpoint === undefined ? {} : { apiEndpoint };
    this.#bucket = new Storage({ projectId: "none", ...place }).bucket(name);
  }

  async seed(versions: readonly SeededVersion[]): Promise<void> {
    await mapConcurrently(versions, parallel, never, ({ content, ...version }) =>
      this.#bucket.file(keyOf(version)).save(content, { resumable: false }),
    );
  }

  /** Removes the objects that begin so. */
  async clear(prefix: string): Promise<void> {
    await this.#bucket.deleteFiles({ prefix });
  }
}
