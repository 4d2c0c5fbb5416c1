/**
 * What stores of objects have to do where something goes wrong between them and their server.
 */
import { describe, expect, onTestFinished, test } from "vitest";
import type { FaultKind } from "../../../../harness/fakes/faults.ts";
import type {
  ArtifactScope,
  ArtifactStore,
  SavedArtifact,
} from "../../../../worker/artifacts/store.ts";
import { describeCutReading } from "./reading.ts";
import { describeCutSaving } from "./saving.ts";
import { describeStalls } from "./stalls.ts";
import {
  type Create,
  never,
  newScope,
  readText,
  refusal,
  saveText,
  sourceOf,
  text,
} from "../under-test.ts";

/**
 * Requests, by what they do: the opening waits for `open`, and `read` brings the content; `part`
 * and `complete` are of large artifacts.
 */
export type ObjectRequest = "list" | "open" | "read" | "write" | "part" | "complete" | "delete";

/** Why a store cannot work. */
export type BrokenAccess =
  "missing bucket" | "wrong credentials" | "skewed clock" | "unreachable server";

/** A store whose server fails on command. */
export interface FailingObjectStore {
  /** Makes a store that cannot work; the test disposes it. */
  readonly createBroken: (how: BrokenAccess) => Promise<ArtifactStore>;
  /** Lets the next requests of a kind fail, or takes that back when it is disposed. */
  readonly fault: (request: ObjectRequest, kind: FaultKind, times: number) => Disposable;
  /** Keys of the server's objects and of unfinished uploads that begin so. */
  readonly kept: (prefix: string) => readonly string[];
  /** What no message may have: bucket, endpoint, credentials. */
  readonly hidden: () => readonly string[];
}

/** More than any store repeats a request. */
export const always = 100;

/** Bytes that every store saves in several requests: more than the parts of any. */
export const largeBytes = 8 * 1024 * 1024 + 4;

/** Requests go wrong until the test is over. */
export function failing({ fault }: FailingObjectStore) {
  return (request: ObjectRequest, kind: FaultKind, times = 1): void => {
    const rule = fault(request, kind, times);
    onTestFinished(() => rule[Symbol.dispose]());
  };
}

/** An operation that makes a request of this kind. */
const operations: Readonly<Record<Request, (use: Use) => Promise<unknown>>> = {
  list: ({ store, scope, signal }) => store.versions(scope, "a.txt", signal),
  open: ({ store, scope, signal }) =>
    store.open(scope, { filename: "a.txt", version: 0 }, signal).then(({ body }) => body.destroy()),
  write: ({ store, scope, signal }) => store.save(scope, "a.txt", sourceOf("new"), text, signal),
  delete: ({ store, scope, saved, signal }) => store.deleteVersion(scope, "a.txt", saved, signal),
};

interface Use {
  readonly store: ArtifactStore;
  readonly scope: ArtifactScope;
  readonly saved: SavedArtifact;
  readonly signal: AbortSignal;
}

const requests = ["list", "open", "write", "delete"] as const;
type Request = (typeof requests)[number];

/** An error of the server, and its reason in messages. */
interface Answer {
  readonly status: number;
  readonly code: string;
  readonly reason: string;
}

const denied: Answer = { status: 403, code: "AccessDenied", reason: "denies access" };
const broken: Answer = { status: 500, code: "InternalError", reason: "failed with status 500" };
/** A store repeats these for some seconds. */
const busy: Answer = { status: 503, code: "SlowDown", reason: "is busy" };
const throttled: Answer = { status: 429, code: "TooManyRequests", reason: "is busy" };

/**
 * A status of the server, by the one request that `npm test` has it with: the store waits before it
 * repeats any.
 */
const inEveryRun: ReadonlyMap<Answer, Request> = new Map([
  [broken, "write"],
  [busy, "list"],
  [throttled, "write"],
]);

function inRun(answer: Answer, request: Request): { readonly tags?: "full" } {
  return inEveryRun.get(answer) === request ? {} : { tags: "full" };
}

/** Describes the failures as vitest tests. */
export function describeObjectStoreFailures(create: Create, failures: FailingObjectStore): void {
  const fault = failing(failures);

  /** Nothing but artifact, session and reason. */
  function expectPublic({ message }: Error): void {
    for (const secret of failures.hidden()) expect(message).not.toContain(secret);
  }

  async function useOf(store: ArtifactStore, signal = never): Promise<Use> {
    const scope = newScope();
    return { store, scope, saved: await saveText(store, scope, "a.txt", "old"), signal };
  }

  function expectMentions({ message }: Error, ...mentions: string[]): void {
    for (const mention of mentions) expect(message).toContain(mention);
  }

  /** With an error that names artifact, session and reason. */
  const expectFailure = (request: Request) => async (answer: Answer) => {
    await using store = await create();
    const use = await useOf(store);
    const { status, code, reason } = answer;
    fault(request, { kind: "error", status, code }, always);
    const error = await refusal(operations[request](use));
    expect(error.reason).toBe("unavailable");
    expectMentions(error, '"a.txt"', use.scope.sessionId, reason);
    expect(error.message).not.toContain(use.scope.root);
    expectPublic(error);
  };

  describe.for(requests)("a request to %s", (request) => {
    test.for([denied])("that is answered $status $code fails", expectFailure(request));

    test.for([broken])(
      "that is answered $status $code fails",
      inRun(broken, request),
      expectFailure(request),
    );

    test.for([busy, throttled])(
      "that is always answered $status $code fails",
      { tags: "full" },
      expectFailure(request),
    );

    const isRepeated = async (kind: FaultKind): Promise<void> => {
      await using store = await create();
      const use = await useOf(store);
      fault(request, kind);
      await operations[request](use);
      const versions = { list: [0], open: [0], write: [0, 1], delete: [] };
      expect(await store.versions(use.scope, "a.txt", never)).toEqual(versions[request]);
    };

    for (const answer of [busy, throttled]) {
      const { status, code } = answer;
      test(`that fails once with ${status} is repeated`, inRun(answer, request), () =>
        isRepeated({ kind: "error", status, code }),
      );
    }

    test.for(["cut request", "lose answer"] as const)("that fails once is repeated: %s", (kind) =>
      isRepeated({ kind }),
    );

    test("that is never answered ends with its signal", async () => {
      await using store = await create();
      const signal = AbortSignal.timeout(300);
      const use = { ...(await useOf(store)), signal };
      fault(request, { kind: "stall" }, always);
      const error: unknown = await operations[request](use).catch((reason: unknown) => reason);
      expect(error).toBe(signal.reason);
    });
  });

  test("names that cannot be listed are those of a session", async () => {
    await using store = await create();
    const scope = newScope();
    fault("list", { kind: "error", ...denied }, always);
    const error = await refusal(store.names(scope, never));
    expect(error.reason).toBe("unavailable");
    expectMentions(error, scope.sessionId, denied.reason);
    expectPublic(error);
  });

  test.for([
    ["missing bucket", "its bucket does not exist"],
    ["wrong credentials", "denies access"],
    ["skewed clock", "clock"],
    ["unreachable server", "cannot be reached"],
  ] as const)("a store with %s fails: %s", async ([how, reason]) => {
    await using store = await failures.createBroken(how);
    const scope = newScope();
    // Together, since a store asks again where no server answers.
    const [checked, ...refused] = await Promise.all([
      refusal(store.check(never)),
      refusal(saveText(store, scope, "a.txt", "a")),
      refusal(readText(store, scope, "a.txt")),
      refusal(store.stat(scope, { filename: "a.txt", version: 0 }, never)),
    ]);
    expectMentions(checked, reason);
    for (const error of refused) expectMentions(error, '"a.txt"', scope.sessionId, reason);
    for (const error of [checked, ...refused]) expectPublic(error);
  });

  describeCutSaving(create, failures);
  describeCutReading(create, failures);
  describeStalls(create, failures);
}
