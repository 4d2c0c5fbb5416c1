/**
 * A whole worker whose artifact store goes away, comes back, or stops in the middle of a transfer.
 */
import { expect, test, vi } from "vitest";
import { gcsVariables } from "../../../../harness/fakes/gcs/variables.ts";
import { startFakeS3 } from "../../../../harness/fakes/s3/server.ts";
import { s3Variables } from "../../../../harness/fakes/s3/variables.ts";
import type { FaultKind } from "../../../../harness/fakes/faults.ts";
import { type Clock, systemClock } from "../../../../worker/support/clock.ts";
import { freePorts } from "../../../support/brokers/rabbitmq-ports.ts";
import { useFakeGcs } from "../../../support/gcs.ts";
import { patience } from "../../../support/patience.ts";
import { useCredentials, useFakeS3 } from "../../../support/s3.ts";
import { loggedFacts } from "../../../support/workers/kept-log.ts";
import { type Rig, startRig } from "../../../support/workers/rig.ts";
import { never, sourceOf } from "../../../unit/artifacts/fixtures.ts";

const bucket = "artifacts";

const tools = {
  saves: { function: "saves" },
  reads: { function: "reads" },
  well: { function: "well" },
};

/** Half a minute is a moment, so that the store is checked all the time. */
const hastyClock: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(ms === 30_000 ? 20 : ms, signal),
};

async function readiness({ worker }: Rig): Promise<{ status: number; body: object }> {
  const response = await fetch(`http://127.0.0.1:${worker.healthPort}/readyz`);
  return { status: response.status, body: (await response.json()) as object };
}

test("a store that goes away fails only calls that need it, and all recover by themselves", async () => {
  const first = await startFakeS3({ buckets: [bucket] });
  const port = Number(new URL(first.endpoint).port);
  useCredentials(first.accessKeyId, first.secretAccessKey);
  const [healthPort] = await freePorts(1);
  await using rig = await startRig({
    tools,
    environment: { ...s3Variables(first, bucket), HEALTH_PORT: String(healthPort) },
    clock: hastyClock,
  });
  const source = sourceOf("kept");
  await rig.store.save(rig.scope, "in.txt", source, { mimeType: "text/plain" }, never);
  const inputs = new Map([["input_file", { filename: "in.txt", version: 0 }]]);
  expect(await rig.call("saves")).toMatchObject({ kind: "success" });
  expect(await readiness(rig)).toEqual({ status: 200, body: { ok: true } });

  await first[Symbol.asyncDispose]();
  const warnings = [expect.stringMatching(/^The artifact store .* cannot be reached\.$/)];
  await vi.waitFor(
    async () => expect(await readiness(rig)).toEqual({ status: 200, body: { ok: true, warnings } }),
    patience,
  );
  const away = { kind: "error", code: "ARTIFACT_ERROR" };
  const message = expect.stringContaining("the artifact store cannot be reached") as unknown;
  const [saved, read, well] = await Promise.all([
    rig.call("saves"),
    rig.call("reads", {}, { references: inputs }),
    rig.call("well"),
  ]);
  expect(saved).toMatchObject({ ...away, message });
  expect(read).toMatchObject({ ...away, message });
  expect(well).toMatchObject({ kind: "success" });

  await using _second = await startFakeS3({ buckets: [bucket], port });
  await vi.waitFor(
    async () => expect(await readiness(rig)).toEqual({ status: 200, body: { ok: true } }),
    patience,
  );
  expect(await rig.call("saves")).toMatchObject({ kind: "success" });
  expect(loggedFacts(rig.logLines, "artifacts.away")).toHaveLength(1);
  expect(loggedFacts(rig.logLines, "artifacts.back")).toHaveLength(1);
});

const s3 = useFakeS3({ buckets: [bucket] });
const gcs = useFakeGcs({ buckets: [bucket] });

/** Variables of each store, and a server that stops in the middle of what is read. */
const stores = [
  [
    "s3",
    () => s3Variables(s3(), bucket),
    (fault: FaultKind) => s3().fault({ operation: "GetObject", fault, times: 100 }),
  ],
  [
    "gcs",
    () => gcsVariables(gcs(), bucket),
    (fault: FaultKind) => gcs().fault({ operation: "objects.download", fault, times: 100 }),
  ],
] as const;

async function endsWithItsTime(row: (typeof stores)[number]): Promise<void> {
  const [, variables, fail] = row;
  await using rig = await startRig({ tools, environment: variables() });
  const source = sourceOf("x".repeat(1024 * 1024));
  await rig.store.save(rig.scope, "in.txt", source, { mimeType: "text/plain" }, never);
  const references = new Map([["input_file", { filename: "in.txt", version: 0 }]]);
  const read = () => rig.call("reads", {}, { references, timeoutSeconds: 2 });
  {
    using _stalled = fail({ kind: "stall answer", afterBytes: 1_000 });
    expect(await read()).toMatchObject({
      kind: "timed-out",
      response: { result: { error_code: "SANDBOX_TIMEOUT" } },
    });
  }
  expect(await read()).toMatchObject({ kind: "success" });
}

const title = "an input that stops in its middle in %s ends with its call's time";
test.for(stores)(title, { tags: "full" }, endsWithItsTime);
