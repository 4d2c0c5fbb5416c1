/**
 * Tokens for Cloud Storage: how often they are asked for, and what happens to one that the server
 * takes no more.
 */
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { type Server, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { type FakeGcs, startFakeGcs } from "../../../../harness/fakes/gcs/server.ts";
import { never, newScope, readText, saveText } from "../../../conformance/artifacts/under-test.ts";
import { gcsStore, useGcsCredentials } from "../../../support/gcs.ts";
import { startProxy } from "../../../support/objects/proxy.ts";

const buckets = ["artifacts"];

async function start(port = 0): Promise<FakeGcs> {
  const server = await startFakeGcs({ buckets, port });
  useGcsCredentials(server.credentialsFile);
  return server;
}

async function listen(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`;
}

async function temporaryDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "gcs-tokens-"));
  onTestFinished(() => rm(path, { recursive: true }));
  return path;
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

test("one that is not renewed hides no save whose answer was lost", { tags: "full" }, async () => {
  await using server = await start();
  const identity = JSON.parse(await readFile(server.credentialsFile, "utf8")) as {
    readonly token_url: string;
  };
  let refusals = 0;
  const renewing = createServer((request, response) => {
    if (refusals-- > 0) return void response.writeHead(400).end();
    void (async () => {
      const { headers } = request;
      const type = headers["content-type"] ?? "";
      const exchange = {
        method: "POST",
        headers: { "content-type": type },
        body: await text(request),
      };
      const token = (await (await fetch(identity.token_url, exchange)).json()) as object;
      // One that ends so soon is renewed for each request.
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ...token, expires_in: 60 }));
    })();
  });
  const token_url = await listen(renewing);
  const directory = await temporaryDirectory();
  const file = join(directory, "credentials.json");
  await writeFile(file, JSON.stringify({ ...identity, token_url }));
  useGcsCredentials(file);
  let inserts = 0;
  const endpoint = await startProxy(server.endpoint, ({ method }) => {
    if (method !== "POST" || ++inserts > 1) return "forward";
    refusals = 1;
    return "cut answer";
  });
  await using store = gcsStore(endpoint, "artifacts");
  const scope = newScope();
  expect(await saveText(store, scope, "a.txt", "once")).toMatchObject({ version: 0 });
  expect(await readText(store, scope, "a.txt")).toBe("once");
  expect(inserts).toBe(1);
});

test("are asked for four times at most while their server fails", { tags: "full" }, async () => {
  let requests = 0;
  const tokens = createServer((_request, response) => {
    requests++;
    response.writeHead(503).end();
  });
  const token_url = await listen(tokens);
  const directory = await temporaryDirectory();
  const [file, subject] = [join(directory, "credentials.json"), join(directory, "token")];
  await writeFile(subject, "subject-token");
  const identity = {
    type: "external_account",
    audience: "//iam.googleapis.com/pool/provider",
    subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
    token_url,
    credential_source: { file: subject },
  };
  await writeFile(file, JSON.stringify(identity));
  await using server = await start();
  useGcsCredentials(file);
  await using store = gcsStore(server.endpoint, "artifacts");
  await expect(store.check(never)).rejects.toThrow("is busy");
  expect(requests).toBe(4);
});
