/**
 * Tokens for Cloud Storage: how often they are asked for, and what happens to one that the server
 * takes no more.
 */
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type FakeGcs, startFakeGcs } from "../../../../harness/fakes/gcs/server.ts";
import { never, newScope, readText, saveText } from "../../../conformance/artifacts/under-test.ts";
import { gcsStore, useGcsCredentials } from "../../../support/gcs.ts";

const buckets = ["artifacts"];

async function start(port = 0): Promise<FakeGcs> {
  const server = await startFakeGcs({ buckets, port });
  useGcsCredentials(server.credentialsFile);
  return server;
}

test("one that the server takes no more is followed by another one", async () => {
  const first = await start();
  const { port } = new URL(first.endpoint);
  await using store = gcsStore(first.endpoint, "artifacts");
  await store.check(never);
  await first[Symbol.asyncDispose]();
  // It knows no token of the first one.
  await using _second = await start(Number(port));
  const scope = newScope();
  const filenames = ["a", "b", "c", "d"];
  await Promise.all(filenames.map((name) => saveText(store, scope, name, name)));
  expect(await readText(store, scope, "d")).toBe("d");
});

test("one that is refused at once is asked for once more only", async () => {
  await using server = await start();
  await using store = gcsStore(server.endpoint, "artifacts");
  await store.check(never);
  const fault = { kind: "error", status: 401, code: "authError" } as const;
  using _refused = server.fault({ operation: "objects.list", fault, times: 2 });
  await expect(store.check(never)).rejects.toThrow("denies access");
  await expect(store.check(never)).resolves.toEqual([]);
});

test("are asked for four times at most while their server fails", async () => {
  let requests = 0;
  const tokens = createServer((_request, response) => {
    requests++;
    response.writeHead(503).end();
  });
  tokens.listen(0, "127.0.0.1");
  await once(tokens, "listening");
  const directory = await mkdtemp(join(tmpdir(), "gcs-tokens-"));
  onTestFinished(async () => {
    tokens.close();
    tokens.closeAllConnections();
    await rm(directory, { recursive: true });
  });
  const [file, subject] = [join(directory, "credentials.json"), join(directory, "token")];
  await writeFile(subject, "subject-token");
  const identity = {
    type: "external_account",
    audience: "//iam.googleapis.com/pool/provider",
    subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
    token_url: `http://127.0.0.1:${(tokens.address() as AddressInfo).port}/token`,
    credential_source: { file: subject },
  };
  await writeFile(file, JSON.stringify(identity));
  await using server = await start();
  useGcsCredentials(file);
  await using store = gcsStore(server.endpoint, "artifacts");
  await expect(store.check(never)).rejects.toThrow("is busy");
  expect(requests).toBe(4);
});
