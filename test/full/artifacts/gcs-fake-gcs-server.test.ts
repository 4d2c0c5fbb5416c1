/**
 * The store of Google Cloud Storage against a server that this project did not write:
 * fake-gcs-server, built by Go. It verifies no tokens, but keeps conditions, uploads and checksums
 * by code of its own.
 *
 * @module-tag full
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeEach, vi } from "vitest";
import { describeArtifactStore } from "../../conformance/artifacts/artifact-store.ts";
import { describeMarkStore } from "../../conformance/artifacts/mark-store.ts";
import { describeObjectStore } from "../../conformance/artifacts/object-store.ts";
import { freePorts } from "../../support/brokers/rabbitmq-ports.ts";
import { GcsTestBucket, gcsStore } from "../../support/gcs.ts";
import { goProgram } from "../../support/go-program.ts";

const [module, version] = ["github.com/fsouza/fake-gcs-server", "v1.56.1"];

/** Milliseconds to build it, and to start it. */
const [buildMs, startMs] = [600_000, 30_000];

let server: ChildProcess | undefined;
let endpoint: string;

beforeEach(async (context) => {
  if (server !== undefined) return;
  const program = await goProgram(context, module, version);
  const [port] = await freePorts(1);
  endpoint = `http://127.0.0.1:${port}`;
  const where = ["-scheme", "http", "-host", "127.0.0.1", "-port", String(port)];
  const argv = [...where, "-backend", "memory", "-external-url", endpoint];
  server = spawn(program, argv, { stdio: "ignore" });
  await vi.waitFor(() => createBucket("artifacts"), { timeout: startMs, interval: 200 });
}, buildMs);

afterAll(async () => {
  if (server === undefined) return;
  const exited = once(server, "exit");
  server.kill("SIGKILL");
  await exited;
});

async function createBucket(name: string): Promise<void> {
  const response = await fetch(`${endpoint}/storage/v1/b`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name }),
  });
  if (!response.ok) throw new Error(`status ${response.status}`);
}

const openStore = (bucket: string) => gcsStore(endpoint, bucket, { isAnonymous: true });

describeArtifactStore("gcs on fake-gcs-server", () => Promise.resolve(openStore("artifacts")));

describeObjectStore("gcs on fake-gcs-server", {
  create: () => Promise.resolve(openStore("artifacts")),
  seed: (versions) => new GcsTestBucket("artifacts", endpoint).seed(versions),
  listed: 1_050,
});

let buckets = 0;
describeMarkStore("gcs on fake-gcs-server", async () => {
  const bucket = `marks-${buckets++}`;
  await createBucket(bucket);
  const view = () => openStore(bucket).marks!;
  return [view(), view()];
});
