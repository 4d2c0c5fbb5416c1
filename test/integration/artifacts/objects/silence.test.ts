/**
 * A server that stops answering altogether in the middle of a save, and a call whose time is over.
 */
import { expect, onTestFinished, test, vi } from "vitest";
import { type ArtifactStore, NotDeletedError } from "../../../../worker/artifacts/store.ts";
import { systemClock } from "../../../../worker/support/clock.ts";
import { settlesWithin } from "../../../../worker/support/timeout.ts";
import { contentOf } from "../../../conformance/artifacts/object-store/saving.ts";
import { newScope, sourceOf, text } from "../../../conformance/artifacts/under-test.ts";
import { gcsStore, useFakeGcs } from "../../../support/gcs.ts";
import { type SeenRequest, startProxy } from "../../../support/objects/proxy.ts";
import { patience } from "../../../support/patience.ts";
import { s3Store, useFakeS3 } from "../../../support/s3.ts";

const s3 = useFakeS3({ buckets: ["artifacts"] });
const gcs = useFakeGcs({ buckets: ["artifacts"] });

interface Kind {
  readonly name: string;
  readonly endpoint: () => string;
  readonly open: (endpoint: string) => ArtifactStore;
  readonly isPart: (request: SeenRequest) => boolean;
}

const kinds: readonly Kind[] = [
  {
    name: "S3",
    endpoint: () => s3().endpoint,
    open: (endpoint) => s3Store(endpoint, "artifacts"),
    isPart: ({ url }) => url.includes("partNumber="),
  },
  {
    name: "Cloud Storage",
    endpoint: () => gcs().endpoint,
    open: (endpoint) => gcsStore(endpoint, "artifacts"),
    isPart: ({ method }) => method === "PUT",
  },
];

const sizeBytes = 11 * 1024 * 1024;

/** Far more than the save waits on a busy machine, and less than its requests one by one. */
const settledMs = 10_000;

const holdsUpNoAbort = async (kind: Kind): Promise<void> => {
  let isSilent = false;
  // Ends after the proxy, so that the store does not wait for answers.
  const stack = new AsyncDisposableStack();
  onTestFinished(() => stack.disposeAsync());
  const endpoint = await startProxy(kind.endpoint(), (request) => {
    // The upload has started, and the version is reserved.
    isSilent ||= kind.isPart(request);
    return isSilent ? "lose" : "forward";
  });
  const store = stack.use(kind.open(endpoint));
  const abort = new AbortController();
  const source = sourceOf(contentOf(sizeBytes));
  const saving = store.save(newScope(), "a.bin", source, text, abort.signal);
  const outcome = saving.catch((error: unknown) => error);
  await vi.waitFor(() => expect(isSilent).toBe(true), patience);
  abort.abort(new Error("the call is over"));
  expect(await settlesWithin(saving, settledMs, systemClock)).toBe(true);
  expect(await outcome).toBeInstanceOf(NotDeletedError);
  expect(((await outcome) as NotDeletedError).cause).toBe(abort.signal.reason);
};
const title = "of $name does not hold up a save that is aborted";
test.for(kinds.filter(({ name }) => name === "S3"))(title, holdsUpNoAbort);
test.for(kinds.filter(({ name }) => name !== "S3"))(title, { tags: "full" }, holdsUpNoAbort);
