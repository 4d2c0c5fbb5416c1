/**
 * Outputs of calls that end while these are saved into an object store.
 */
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { s3Variables } from "../../../../harness/fakes/s3/variables.ts";
import { useFakeS3 } from "../../../support/s3.ts";
import { patience } from "../../../support/patience.ts";
import { loggedFacts } from "../../../support/workers/kept-log.ts";
import { startRig } from "../../../support/workers/rig.ts";

const bucket = "artifacts";
const server = useFakeS3({ buckets: [bucket] });

const files = {
  "leaving.py": `
def leaves_small_and_large(ctx):
    ctx.save_artifact_text("small.txt", "a")
    ctx.save_artifact("large.bin", b"x" * (6 * 1024 * 1024))
    return {}
`,
};

type Operation = Parameters<ReturnType<typeof server>["fault"]>[0]["operation"];

function fault(operation: Operation, kind: "stall" | "denied"): void {
  const denied = { kind: "error", status: 403, code: "AccessDenied" } as const;
  const rule = server().fault({
    operation,
    fault: kind === "stall" ? { kind } : denied,
    times: 1_000,
  });
  onTestFinished(() => rule[Symbol.dispose]());
}

const names = (): readonly string[] =>
  [...server().bucket(bucket).objects.keys()].filter((key) => !key.startsWith("."));

async function start() {
  const tool = "leaves_small_and_large";
  const environment = { ...s3Variables(server(), bucket), DRAIN_TIMEOUT_SECONDS: "0" };
  const tools = { [tool]: { module: "leaving", function: tool } };
  const rig = await startRig({ tools, files, environment });
  onTestFinished(() => rig[Symbol.asyncDispose]());
  fault("UploadPart", "stall");
  return { rig, call: (timeoutSeconds: number) => rig.call(tool, {}, { timeoutSeconds }) };
}

beforeEach(() => {
  // Each test has the bucket to itself.
  server().bucket(bucket).objects.clear();
});

describe("a call whose outputs are not all saved", () => {
  test("since its worker shuts down names those that remain", async () => {
    const { rig, call } = await start();
    fault("DeleteObject", "denied");
    const answer = call(30);
    await vi.waitFor(() => {
      expect(names()).toEqual(["rig/user-42/web-1/small.txt/0"]);
      expect([...server().bucket(bucket).uploads]).toHaveLength(1);
    }, patience);
    await rig.worker[Symbol.asyncDispose]();
    expect(await answer).toMatchObject({
      ...{ kind: "error", code: "SANDBOX_FAILED" },
      message: expect.stringMatching(
        /These outputs could not be deleted: "small.txt" version 0$/,
      ) as unknown,
    });
    expect(loggedFacts(rig.logLines, "outputs.not_deleted")).toMatchObject([
      { versions: ['"small.txt" version 0'] },
    ]);
    expect([...server().bucket(bucket).uploads]).toEqual([]);
  });

  test("since its time is over leaves none", { tags: "full" }, async () => {
    const { call } = await start();
    expect(await call(1)).toMatchObject({
      ...{ kind: "error", code: "ARTIFACT_ERROR" },
      message: expect.stringMatching(
        /^Artifacts could not be saved: it took more than the \d+ ms that were left\. No output was kept\.$/,
      ) as unknown,
    });
    expect(names()).toEqual([]);
    expect([...server().bucket(bucket).uploads]).toEqual([]);
  });
});
