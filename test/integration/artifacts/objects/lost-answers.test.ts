/**
 * Answers that are lost and then followed by a refusal: what was carried out is found all the same.
 */
import { expect, test } from "vitest";
import { contentOf } from "../../../conformance/artifacts/object-store/saving.ts";
import { newScope, never, sourceOf, text } from "../../../conformance/artifacts/under-test.ts";
import { gcsStore, useFakeGcs } from "../../../support/gcs.ts";
import { type Passage, startProxy } from "../../../support/objects/proxy.ts";
import { s3Store, useFakeS3 } from "../../../support/s3.ts";
import type { ArtifactStore } from "../../../../worker/artifacts/store.ts";

const s3 = useFakeS3({ buckets: ["artifacts"] });
const gcs = useFakeGcs({ buckets: ["artifacts"] });

const sizeBytes = 9 * 1024 * 1024;

test(
  "an upload whose last answer is lost, and about which the server then tells nothing",
  { tags: "full" },
  async () => {
    const passages: Passage[] = ["forward", "cut answer", "deny"];
    const endpoint = await startProxy(gcs().endpoint, ({ method }) =>
      method === "PUT" ? (passages.shift() ?? "forward") : "forward",
    );
    await using store = gcsStore(endpoint, "artifacts");
    const source = sourceOf(contentOf(sizeBytes));
    const saving = store.save(newScope(), "a.bin", source, text, never);
    expect(await saving).toMatchObject({ version: 0 });
    expect(passages).toEqual([]);
  },
);

type Kind = readonly [name: string, endpoint: () => string, open: (url: string) => ArtifactStore];
const inS3: Kind = ["S3", () => s3().endpoint, (url) => s3Store(url, "artifacts")];
const inGcs: Kind = ["Cloud Storage", () => gcs().endpoint, (url) => gcsStore(url, "artifacts")];
const savesAgain = async ([, target, open]: Kind): Promise<void> => {
  let isSilent = true;
  const written: string[] = [];
  const endpoint = await startProxy(target(), ({ method, url }) => {
    const isReservation = decodeURIComponent(url).includes(".str-claims/versions/");
    if (!isReservation || method === "GET") return "forward";
    written.push(method);
    return isSilent && method !== "DELETE" ? "cut answer" : "forward";
  });
  await using store = open(endpoint);
  const [scope, source] = [newScope(), sourceOf(contentOf(sizeBytes))];
  await expect(store.save(scope, "a.bin", source, text, never)).rejects.toThrow(
    "could not be saved",
  );
  isSilent = false;
  expect(written.at(-1)).toBe("DELETE");
  const again = sourceOf(contentOf(sizeBytes));
  expect(await store.save(scope, "a.bin", again, text, never)).toMatchObject({ version: 0 });
};
const reservation = "a reservation in %s of which no answer comes";
test.for([inS3])(reservation, savesAgain);
test.for([inGcs])(reservation, { tags: "full" }, savesAgain);
