/**
 * Where the S3 store finds credentials: each source of the SDK, over HTTP where it is a server.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { never, newScope, saveText } from "../../conformance/artifacts/under-test.ts";
import { s3Store, useFakeS3 } from "../../support/s3.ts";

const server = useFakeS3({ buckets: ["artifacts"] });

interface Keys {
  readonly id: string;
  readonly secret: string;
}

beforeEach(() => {
  vi.stubEnv("AWS_ACCESS_KEY_ID", undefined);
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", undefined);
  vi.stubEnv("AWS_CONFIG_FILE", "/nonexistent/config");
  vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials");
  vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
});

afterEach(() => {
  vi.unstubAllEnvs();
});

async function fileOf(content: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "s3-credentials-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, "file");
  await writeFile(path, content);
  return path;
}

/** A server that answers each `METHOD /path`, without its query; its URL. */
async function serve(answers: Readonly<Record<string, string>>): Promise<string> {
  const http = createServer(({ method, url = "" }, response) => {
    const answer = answers[`${method} ${url.split("?")[0]}`];
    response.writeHead(answer === undefined ? 404 : 200).end(answer);
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  onTestFinished(() => {
    http.close();
    http.closeAllConnections();
  });
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
}

const expiration = "2999-01-01T00:00:00Z";

function temporary({ id, secret }: Keys): string {
  const keys = { AccessKeyId: id, SecretAccessKey: secret, Token: "session-token" };
  return JSON.stringify({ Code: "Success", ...keys, Expiration: expiration });
}

/** Variables for each source. */
const sources: Readonly<Record<string, (keys: Keys) => Promise<Record<string, string>>>> = {
  "the environment": ({ id, secret }) =>
    Promise.resolve({
      AWS_ACCESS_KEY_ID: id,
      AWS_SECRET_ACCESS_KEY: secret,
      AWS_SESSION_TOKEN: "session-token",
    }),
  "a profile": async ({ id, secret }) => ({
    AWS_PROFILE: "artifacts",
    AWS_SHARED_CREDENTIALS_FILE: await fileOf(
      `[artifacts]\naws_access_key_id = ${id}\naws_secret_access_key = ${secret}\n`,
    ),
  }),
  "a web identity": async ({ id, secret }) => {
    const keys = `<AccessKeyId>${id}</AccessKeyId><SecretAccessKey>${secret}</SecretAccessKey>`;
    const session = `<SessionToken>token</SessionToken><Expiration>${expiration}</Expiration>`;
    const result = `<Credentials>${keys}${session}</Credentials>`;
    const name = "AssumeRoleWithWebIdentity";
    return {
      AWS_REGION: "us-east-1",
      AWS_ROLE_ARN: "arn:aws:iam::123456789012:role/worker",
      AWS_WEB_IDENTITY_TOKEN_FILE: await fileOf("identity-token"),
      AWS_ENDPOINT_URL_STS: await serve({
        "POST /": `<${name}Response><${name}Result>${result}</${name}Result></${name}Response>`,
      }),
    };
  },
  "a container": async (keys) => ({
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `${await serve({ "GET /role": temporary(keys) })}/role`,
  }),
  "an instance": async (keys) => {
    const role = "/latest/meta-data/iam/security-credentials/";
    return {
      AWS_EC2_METADATA_DISABLED: "false",
      AWS_EC2_METADATA_SERVICE_ENDPOINT: await serve({
        "PUT /latest/api/token": "metadata-token",
        [`GET ${role}`]: "worker",
        [`GET ${role}worker`]: temporary(keys),
      }),
    };
  },
};

describe.for(Object.entries(sources))("credentials of %s", ([, variablesOf]) => {
  async function useKeys(keys: Keys): Promise<void> {
    for (const [name, value] of Object.entries(await variablesOf(keys))) vi.stubEnv(name, value);
  }

  test("are used", async () => {
    const { endpoint, accessKeyId, secretAccessKey } = server();
    await useKeys({ id: accessKeyId, secret: secretAccessKey });
    await using store = s3Store(endpoint, "artifacts");
    expect(await saveText(store, newScope(), "a.txt", "a")).toMatchObject({ version: 0 });
  });

  test("are refused when they are wrong", async () => {
    const { endpoint, accessKeyId } = server();
    await useKeys({ id: accessKeyId, secret: "another-secret" });
    await using store = s3Store(endpoint, "artifacts");
    await expect(store.check(never)).rejects.toThrow("the artifact store denies access");
  });
});

test("a store without any source says so", async () => {
  await using store = s3Store(server().endpoint, "artifacts");
  await expect(store.check(never)).rejects.toThrow(
    "the worker has no credentials for the artifact store",
  );
});
