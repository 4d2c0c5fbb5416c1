/**
 * Large inputs and outputs of a call: no part of the worker holds one as a whole, and between files
 * the kernel copies them.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { gcsVariables } from "../../../harness/fakes/gcs/variables.ts";
import { s3Variables } from "../../../harness/fakes/s3/variables.ts";
import { useFakeGcs } from "../../support/gcs.ts";
import { useFakeS3 } from "../../support/s3.ts";
import { programEnvironment } from "../../support/workers/program-environment.ts";
import { temporaryDirectory } from "../../unit/artifacts/fixtures.ts";

const run = promisify(execFile);
const program = fileURLToPath(new URL("./transfer-process.ts", import.meta.url));

const MiB = 1024 * 1024;
const sizeBytes = 32 * MiB;
/** The S3 store holds three parts of 5 MiB, Cloud Storage's one of 8 MiB; streams hold little. */
const maxHeldBytes = 24 * MiB;

const bucket = "artifacts";
const server = useFakeS3({ buckets: [bucket] });
const gcsServer = useFakeGcs({ buckets: [bucket] });

const stores: Readonly<Record<string, () => Promise<Readonly<Record<string, string>>>>> = {
  filesystem: async () => ({
    ARTIFACT_SERVICE_TYPE: "filesystem",
    ARTIFACT_BASE_PATH: await temporaryDirectory(),
  }),
  s3: () => Promise.resolve(s3Variables(server(), bucket)),
  gcs: () => Promise.resolve(gcsVariables(gcsServer(), bucket)),
};

/** What the program prints. */
interface Transferred {
  readonly staging: Costs;
  readonly saving: Costs;
  readonly stagedBytes: number;
  readonly savedBytes: number;
}

type Costs = Readonly<Record<"heldBytes" | "ownBytes" | "childrenBytes" | "childrenCalls", number>>;

const title = "32 MiB go into a call and out of it in little memory: %s";

async function expectFlat(kind: string): Promise<void> {
  const env = { ...programEnvironment(), ...(await stores[kind]!()) };
  const argv = ["--expose-gc", program, String(sizeBytes), await temporaryDirectory()];
  const { stdout } = await run(process.execPath, argv, { env });
  const { staging, saving, ...moved } = JSON.parse(stdout) as Transferred;
  expect(moved).toEqual({ stagedBytes: sizeBytes, savedBytes: sizeBytes });
  expect(staging.heldBytes).toBeLessThan(maxHeldBytes);
  expect(saving.heldBytes).toBeLessThan(maxHeldBytes);
  if (kind !== "filesystem") return;
  // No byte comes through the worker. Of a buffer of 128 KiB the copy would take 256 reads.
  for (const { ownBytes, childrenBytes, childrenCalls } of [staging, saving]) {
    expect(ownBytes).toBeLessThan(MiB);
    expect(childrenBytes).toBeGreaterThanOrEqual(sizeBytes);
    expect(childrenCalls).toBeLessThan(200);
  }
}

test.for(["filesystem"])(title, expectFlat);
test.for(["s3", "gcs"])(title, { tags: "full" }, expectFlat);
