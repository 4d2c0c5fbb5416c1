/**
 * What stores of objects ask of their server: no list of what a policy keeps from them, and what
 * became of a save that was aborted.
 */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  type ArtifactStore,
  NotDeletedError,
  type SavedArtifact,
} from "../../../../worker/artifacts/store.ts";
import {
  never,
  newScope,
  readText,
  refusal,
  saveText,
  sourceOf,
  text,
} from "../../../conformance/artifacts/under-test.ts";
import { gcsStore, useFakeGcs } from "../../../support/gcs.ts";
import { type Passage, type SeenRequest, startProxy } from "../../../support/objects/proxy.ts";
import { s3Store, useFakeS3 } from "../../../support/s3.ts";
import { patience } from "../../../support/patience.ts";

const s3 = useFakeS3({ buckets: ["artifacts"] });
const gcs = useFakeGcs({ buckets: ["artifacts"] });

type Decide = (request: SeenRequest) => Passage;

interface Kind {
  readonly name: string;
  /** A store behind a proxy. */
  readonly open: (decide: Decide) => Promise<ArtifactStore>;
  readonly keys: () => readonly string[];
  /** Whether a request lists, writes a small object, or asks for facts about one. */
  readonly is: Readonly<Record<"list" | "write" | "head", (request: SeenRequest) => boolean>>;
}

const kinds: readonly Kind[] = [
  {
    name: "S3",
    open: async (decide) => s3Store(await startProxy(s3().endpoint, decide), "artifacts"),
    keys: () => [...s3().bucket("artifacts").objects.keys()],
    is: {
      list: ({ url }) => url.includes("list-type=2"),
      write: ({ method }) => method === "PUT",
      head: ({ method }) => method === "HEAD",
    },
  },
  {
    name: "Cloud Storage",
    open: async (decide) => gcsStore(await startProxy(gcs().endpoint, decide), "artifacts"),
    keys: () => [...gcs().bucket("artifacts").objects.keys()],
    is: {
      list: ({ method, url }) => method === "GET" && /\/o\?/.test(url),
      write: ({ method, url }) => method === "POST" && url.startsWith("/upload/"),
      head: ({ method, url }) => method === "GET" && /\/o\/[^?]+$/.test(url),
    },
  },
];

describe.for(kinds)("in $name", ({ open, keys, is }) => {
  async function openBehind(decide: Decide): Promise<ArtifactStore> {
    const store = await open(decide);
    onTestFinished(() => store[Symbol.asyncDispose]());
    return store;
  }

  test("only lists of the scope and of marks are needed", async () => {
    const scope = newScope();
    const prefixes = [`${scope.root}/`, ".str-claims/"];
    const store = await openBehind((request) => {
      const { searchParams } = new URL(request.url, "http://proxy");
      const prefix = searchParams.get("prefix") ?? "";
      const isAllowed = prefixes.some((allowed) => prefix.startsWith(allowed));
      return is.list(request) && !isAllowed ? "deny" : "forward";
    });
    expect(await store.check(never)).toEqual([]);
    await saveText(store, scope, "a.txt", "a");
    expect(await readText(store, scope, "a.txt")).toBe("a");
    expect(await store.names(scope, never)).toEqual(["a.txt"]);
    await store.marks!.sweep(() => Infinity, never);
    const missing = store.stat(scope, { filename: "b.txt", version: 0 }, never);
    expect((await refusal(missing)).reason).toBe("not-found");
  });

  /** A save that is aborted once its object is there, before the answer. */
  async function saveAborted(headsPass: () => boolean) {
    const [scope, abort] = [newScope(), new AbortController()];
    const store = await openBehind((request) => {
      if (is.write(request)) return "withhold answer";
      return is.head(request) && !headsPass() ? "deny" : "forward";
    });
    const saving = store.save(scope, "a.txt", sourceOf("a"), text, abort.signal);
    const outcome = saving.catch((error: unknown) => error);
    await vi.waitFor(
      () => expect(keys().some((key) => key.startsWith(scope.root))).toBe(true),
      patience,
    );
    const reason = new Error("the call is over");
    abort.abort(reason);
    return { store, scope, reason, outcome: await outcome };
  }

  test("a save that is aborted after its object was stored is a success", async () => {
    const { store, scope, outcome } = await saveAborted(() => true);
    expect(outcome).toMatchObject({ version: 0 });
    const saved = outcome as SavedArtifact;
    expect(await store.deleteVersion(scope, "a.txt", saved, never)).toBe(true);
  });

  test("a save whose outcome the server does not tell says which version may exist", async () => {
    let isTold = false;
    const { store, scope, reason, outcome } = await saveAborted(() => isTold);
    expect(outcome).toBeInstanceOf(NotDeletedError);
    const { saved, cause } = outcome as NotDeletedError;
    expect(cause).toBe(reason);
    expect(saved).toMatchObject({ version: 0 });
    isTold = true;
    expect(await store.deleteVersion(scope, "a.txt", saved, never)).toBe(true);
    expect(await store.versions(scope, "a.txt", never)).toEqual([]);
  });
});
