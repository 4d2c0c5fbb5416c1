import { describe, expect, test } from "vitest";
import { guarded } from "../../../worker/artifacts/failures.ts";
import { StoreError } from "../../../worker/artifacts/store.ts";
import { never } from "./fixtures.ts";

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: failed, open '/sam/artifacts/secret'`), { code });
}

describe("an operation of a store", () => {
  test.for([
    ["ENOSPC", "It failed: no space is left in the artifact store."],
    ["EDQUOT", "It failed: the quota of the artifact store is used up."],
    ["EROFS", "It failed: the artifact store is read-only."],
    ["EACCES", "It failed: the artifact store denies access."],
    ["EIO", "It failed: the artifact store failed with EIO."],
  ] as const)("that fails with %s says so without the path", async ([code, message]) => {
    const cause = systemError(code);
    const attempt = guarded("It failed", never, () => Promise.reject(cause));
    await expect(attempt).rejects.toMatchObject({
      name: "StoreError",
      reason: "unavailable",
      message,
      cause,
    });
  });

  test("that fails for no stated reason says only that", async () => {
    await expect(
      guarded("It failed", never, () => Promise.reject(new Error("secret"))),
    ).rejects.toThrow(/^It failed: the artifact store failed\.$/);
  });

  test("passes a StoreError on as it is", async () => {
    const error = new StoreError("not-found", "It is not there.");
    await expect(guarded("It failed", never, () => Promise.reject(error))).rejects.toBe(error);
  });

  test("that was aborted ends with the signal's reason, whatever it failed with", async () => {
    const abort = new AbortController();
    const reason = new Error("the call is over");
    const attempt = guarded("It failed", abort.signal, () => {
      abort.abort(reason);
      return Promise.reject(systemError("EIO"));
    });
    await expect(attempt).rejects.toBe(reason);
  });

  test("that was done before the signal aborted is done", async () => {
    const abort = new AbortController();
    const attempt = guarded("It failed", abort.signal, () => {
      abort.abort();
      return Promise.resolve("done");
    });
    await expect(attempt).resolves.toBe("done");
  });
});
