/**
 * The region for which the S3 store signs: the operator's, else the SDK's own, else the usual one
 * of servers other than Amazon's.
 */
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import type { S3StoreConfig } from "../../../../worker/artifacts/s3/config.ts";
import { never } from "../../../conformance/artifacts/under-test.ts";
import { s3Store, s3StoreOf } from "../../../support/s3.ts";

const credentials = { accessKeyId: "access-key", secretAccessKey: "secret-key" };

beforeEach(() => {
  vi.stubEnv("AWS_REGION", undefined);
  vi.stubEnv("AWS_PROFILE", undefined);
  vi.stubEnv("AWS_CONFIG_FILE", "/nonexistent/config");
  vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials");
});

afterEach(() => {
  vi.unstubAllEnvs();
});

async function useProfile(region: string): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "s3-region-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, "config");
  await writeFile(path, `[profile artifacts]\nregion = ${region}\n`);
  vi.stubEnv("AWS_CONFIG_FILE", path);
  vi.stubEnv("AWS_PROFILE", "artifacts");
}

/** A server that refuses requests, with the regions in their signatures. */
async function refusing() {
  const regions: (string | undefined)[] = [];
  const server = createServer(({ headers: { authorization = "" } }, response) => {
    regions.push(/Credential=[^/]+\/\d+\/([^/]+)\/s3\//.exec(authorization)?.[1]);
    response.writeHead(403).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { regions, endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** The region in the signature of a request. */
async function signedRegion(changes: Partial<S3StoreConfig> = {}): Promise<string | undefined> {
  const { regions, endpoint } = await refusing();
  const config = { credentials, region: undefined, ...changes };
  await using store = s3Store(endpoint, "artifacts", config);
  await expect(store.check(never)).rejects.toThrow("denies access");
  return regions[0];
}

test("is that of the profile", async () => {
  await useProfile("eu-west-3");
  expect(await signedRegion()).toBe("eu-west-3");
});

test("is that of AWS_REGION before the profile's", async () => {
  await useProfile("eu-west-3");
  vi.stubEnv("AWS_REGION", "eu-north-1");
  expect(await signedRegion()).toBe("eu-north-1");
});

test("is the operator's before all others", async () => {
  vi.stubEnv("AWS_REGION", "eu-north-1");
  expect(await signedRegion({ region: "eu-central-1" })).toBe("eu-central-1");
});

test("is the usual one where an endpoint is given, and no region", async () => {
  expect(await signedRegion()).toBe("us-east-1");
});

test("is missing without any, and the error says so", async () => {
  await using store = s3StoreOf({ bucket: "artifacts", credentials, region: undefined });
  await expect(store.check(never)).rejects.toThrow("the region of its bucket is not configured");
});

test("is looked for once, since each request would take twice as long", async () => {
  const { regions, endpoint } = await refusing();
  await using store = s3Store(endpoint, "artifacts", { credentials, region: undefined });
  vi.stubEnv("AWS_REGION", "eu-north-1");
  await expect(store.check(never)).rejects.toThrow("denies access");
  vi.stubEnv("AWS_REGION", "eu-west-3");
  await expect(store.check(never)).rejects.toThrow("denies access");
  expect(regions).toEqual(["eu-north-1", "eu-north-1"]);
});
