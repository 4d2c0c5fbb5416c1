/**
 * The S3 store against a server that this project did not write: moto, from PyPI. It verifies no
 * signatures, but keeps conditions, parts and checksums by code of its own.
 *
 * @module-tag full
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, beforeEach, vi } from "vitest";
import { describeArtifactStore } from "../../conformance/artifacts/artifact-store.ts";
import { describeMarkStore } from "../../conformance/artifacts/mark-store.ts";
import { freePorts } from "../../support/brokers/rabbitmq-ports.ts";
import { s3Store, useCredentials } from "../../support/s3.ts";

const run = promisify(execFile);

const moto = "moto[server,s3]==5.2.5";

/** Milliseconds to install it, and to start it. */
const [installMs, startMs] = [180_000, 30_000];

let directory: string;
let server: ChildProcess | undefined;
let endpoint: string;
/** Why there is no server; undefined when there is one. */
let missing: string | undefined;

beforeAll(async () => {
  useCredentials("key", "secret");
  directory = await mkdtemp(join(tmpdir(), "moto-"));
  try {
    await run("python3", ["-m", "venv", directory]);
    await run(join(directory, "bin", "pip"), ["install", "--quiet", moto], { timeout: installMs });
  } catch (error) {
    missing = `moto cannot be installed from PyPI: ${String(error).split("\n")[0]}`;
    return;
  }
  const [port] = await freePorts(1);
  endpoint = `http://127.0.0.1:${port}`;
  const argv = ["-H", "127.0.0.1", "-p", String(port)];
  server = spawn(join(directory, "bin", "moto_server"), argv, { stdio: "ignore" });
  await vi.waitFor(() => createBucket("artifacts"), { timeout: startMs, interval: 200 });
}, 2 * installMs);

afterAll(async () => {
  if (server !== undefined) {
    const exited = once(server, "exit");
    server.kill("SIGKILL");
    await exited;
  }
  await rm(directory, { recursive: true, force: true });
});

beforeEach(({ skip }) => skip(missing !== undefined, missing));

async function createBucket(Bucket: string): Promise<void> {
  const client = new S3Client({ region: "us-east-1", endpoint, forcePathStyle: true });
  await client.send(new CreateBucketCommand({ Bucket }));
  client.destroy();
}

describeArtifactStore("s3 on moto", () => Promise.resolve(s3Store(endpoint, "artifacts")));

let buckets = 0;
describeMarkStore("s3 on moto", async () => {
  const bucket = `marks-${buckets++}`;
  await createBucket(bucket);
  const view = () => s3Store(endpoint, bucket).marks!;
  return [view(), view()];
});
