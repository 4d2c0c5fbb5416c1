/**
 * What a save knows of its object where the server's answers do not tell.
 */
import { describe, expect, test, vi } from "vitest";
import {
  type ErrorMeaning,
  type ObjectBucket,
  type ObjectFacts,
  UnknownOutcomeError,
  type Uploader,
} from "../../../../worker/artifacts/objects/bucket.ts";
import { CleanUps } from "../../../../worker/artifacts/objects/clean-ups.ts";
import { saveMetadata } from "../../../../worker/artifacts/objects/metadata.ts";
import { VersionWriter } from "../../../../worker/artifacts/objects/writer.ts";

const own: ObjectFacts = {
  etag: "1",
  sizeBytes: 1,
  contentType: undefined,
  metadata: saveMetadata("own"),
};

interface Situation {
  readonly meaning: ErrorMeaning;
  readonly found: ObjectFacts | undefined;
  /** What each attempt rejects with. */
  readonly error?: Error;
  readonly onPut?: () => void;
}

/** Writes to a server that answers each attempt with an error. */
function write({ meaning, found, error = new Error("answer"), onPut }: Situation, signal = never) {
  const head = vi.fn(() => Promise.resolve(found));
  const bucket = { head, meaningOf: () => meaning } as Partial<ObjectBucket> as ObjectBucket;
  const put = vi.fn(() => {
    onPut?.();
    return Promise.reject(error);
  });
  const uploader: Uploader = {
    isInParts: false,
    ready: Promise.resolve(),
    put,
    [Symbol.dispose]: () => undefined,
  };
  const object = { key: "key", contentType: "text/plain", metadata: {} };
  const writer = new VersionWriter(bucket, new CleanUps());
  const outcome = writer.write({ object, saveId: "own", uploader, isConditional: true }, signal);
  return { outcome, put, head };
}

const never = new AbortController().signal;

describe("conflicts", () => {
  test.for([
    [own, "own"],
    [{ ...own, metadata: saveMetadata("other") }, "taken"],
    [undefined, "taken"],
  ] as const)("with an earlier request of the save end when it is found", async (row) => {
    const [found, outcome] = row;
    const written = write({ meaning: "conflict", found });
    expect(await written.outcome).toBe(outcome);
    expect(written.head).toHaveBeenCalledOnce();
  });

  test("are looked into after an abort", async () => {
    const abort = new AbortController();
    const onPut = (): void => abort.abort();
    const written = write({ meaning: "conflict", found: own, onPut }, abort.signal);
    expect(await written.outcome).toBe("own");
    expect(written.put).toHaveBeenCalledOnce();
  });
});

test("an object that is not as it was sent is not the save's own", async () => {
  const error = new UnknownOutcomeError(new Error("damaged"));
  const written = write({ meaning: "unknown", found: own, error });
  await expect(written.outcome).rejects.toBe(error);
});

test("an upload that the server keeps losing is sent four times", async () => {
  const written = write({ meaning: "upload gone", found: undefined });
  await expect(written.outcome).rejects.toThrow("answer");
  expect(written.put).toHaveBeenCalledTimes(4);
});
