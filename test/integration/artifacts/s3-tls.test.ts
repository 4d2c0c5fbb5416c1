/**
 * A worker whose S3 server has a certificate of an authority of one's own.
 *
 * @module-tag full
 */
import { once } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createServer } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { s3Variables } from "../../../harness/fakes/s3/variables.ts";
import { Authority } from "../../support/brokers/rabbitmq-certificates.ts";
import { useFakeS3 } from "../../support/s3.ts";
import { manifestText, namespace, reachableDirectory } from "../../support/workers/rig.ts";
import { WorkerProcess } from "../../support/workers/worker-process.ts";
import { temporaryDirectory } from "../../unit/artifacts/fixtures.ts";

const bucket = "artifacts";
const server = useFakeS3({ buckets: [bucket] });

/** The double behind TLS: its port, and the file of its authority. */
async function openFront(): Promise<{ readonly port: number; readonly authority: string }> {
  const directory = await temporaryDirectory();
  const authority = await Authority.create(directory);
  const files = await authority.issue("s3", "IP:127.0.0.1");
  const [cert, key] = await Promise.all([readFile(files.cert), readFile(files.key)]);
  const front = createServer({ cert, key }, (socket) => {
    const behind = connect(Number(new URL(server().endpoint).port), "127.0.0.1");
    // Either side may cut its connection.
    pipeline(socket, behind, socket).catch(() => undefined);
  });
  front.listen(0, "127.0.0.1");
  await once(front, "listening");
  onTestFinished(() => void front.close());
  return { port: (front.address() as AddressInfo).port, authority: authority.cert };
}

/** What `--check` says of a store at a URL. */
async function check(endpoint: string, variables: Readonly<Record<string, string>>) {
  const { ARTIFACT_S3_ENDPOINT: _ofDouble, ...store } = s3Variables(server(), bucket);
  const tools = await reachableDirectory();
  onTestFinished(() => rm(tools, { recursive: true }));
  const manifest = join(tools, "manifest.yaml");
  await writeFile(manifest, manifestText({}));
  const environment = {
    SAM_NAMESPACE: namespace,
    DEV_BROKER_HOST: "127.0.0.1",
    MANIFEST_PATH: manifest,
    TOOLS_PYTHON_DIR: tools,
    SANDBOX_WORK_DIR: join(tools, "work"),
    SANDBOX_MIN_FREE_DISK_MB: "1",
  };
  await using worker = new WorkerProcess(
    { ...environment, ...store, S3_ENDPOINT_URL: endpoint, ...variables },
    ["--check"],
  );
  const { code } = await worker.exited;
  return { code, output: worker.output };
}

test("is trusted with NODE_EXTRA_CA_CERTS, and not without", async () => {
  const { port, authority } = await openFront();
  const endpoint = `https://127.0.0.1:${port}`;
  const untrusted = await check(endpoint, {});
  expect(untrusted.output).toContain("the artifact store's certificate is not trusted");
  const trusted = await check(endpoint, { NODE_EXTRA_CA_CERTS: authority });
  expect(trusted).toMatchObject({ code: 0, output: expect.stringContaining('"store": "s3"') });
});
