/**
 * With the host's network a tool reaches HTTPS servers by the host's certificates and name service
 * files, and nothing more of it.
 */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { Agent } from "../../harness/agent.ts";
import { startDevBroker } from "../../harness/dev-broker/dev-broker.ts";
import {
  manifestText,
  namespace,
  reachableDirectory,
  workerEnvironment,
} from "../support/workers/rig.ts";
import { WorkerProcess } from "../support/workers/worker-process.ts";
import { isRoot } from "../support/is-root.ts";

const run = promisify(execFile);
const fixtureTools = fileURLToPath(new URL("../fixtures/tools/", import.meta.url));
const hostName = "tools.str-test.example";

/**
 * A certificate for `hostName`, signed by itself, and a directory that trusts it in OpenSSL's form.
 */
async function makeCertificates(base: string) {
  const [key, certificate] = [join(base, "key.pem"), join(base, "certificate.pem")];
  const subject = ["-subj", `/CN=${hostName}`, "-addext", `subjectAltName=DNS:${hostName}`];
  await run("openssl", [
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:prime256v1",
    "-nodes",
    "-days",
    "2",
    "-keyout",
    key,
    "-out",
    certificate,
    ...subject,
  ]);
  const hash = (
    await run("openssl", ["x509", "-hash", "-noout", "-in", certificate])
  ).stdout.trim();
  const trusted = join(base, "certs");
  await mkdir(trusted);
  await writeFile(join(trusted, `${hash}.0`), await readFile(certificate));
  return { key: await readFile(key), cert: await readFile(certificate), trusted };
}

test(
  "the host's network has its certificates and hosts file for HTTPS; restrictive has neither",
  { tags: "promise-S14" },
  async (context) => {
    if (!isRoot) context.skip("needs root to give the worker another /etc/hosts");
    await using owned = new AsyncDisposableStack();
    const base = await reachableDirectory();
    owned.defer(() => rm(base, { recursive: true, force: true }));
    const { key, cert, trusted } = await makeCertificates(base);
    const hosts = join(base, "hosts");
    await writeFile(hosts, `127.0.0.1 localhost ${hostName}\n`);

    await using server = createServer({ key, cert }, (_request, response) =>
      response.end("over TLS"),
    );
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `https://${hostName}:${(server.address() as AddressInfo).port}/`;

    const broker = owned.use(await startDevBroker());
    const manifestPath = join(base, "manifest.yaml");
    const https_get = { function: "https_get", network: "host" } as const;
    await writeFile(
      manifestPath,
      manifestText({
        https_get,
        offline: { function: "https_get", sandbox_profile: "restrictive" },
      }),
    );
    const mounts = `mount --bind ${hosts} /etc/hosts && mount --bind ${trusted} /etc/ssl/certs && exec "$@"`;
    const prefix = ["unshare", "--mount", "bash", "-c", mounts, "bash"];
    const worker = owned.use(
      new WorkerProcess(workerEnvironment(broker, base, manifestPath, fixtureTools), [], prefix),
    );
    await worker.says("worker.ready");
    const agent = owned.use(
      await Agent.connect(
        { host: broker.host, port: broker.port, namespace },
        AbortSignal.timeout(30_000),
      ),
    );

    expect(await agent.call({ tool: "https_get", args: { url } })).toMatchObject({
      kind: "success",
      toolResult: { status: 200, body: "over TLS" },
    });
    expect(await agent.call({ tool: "offline", args: { url } })).toMatchObject({
      kind: "error",
      code: "EXECUTION_ERROR",
      message: expect.stringContaining("URLError"),
    });
  },
);
