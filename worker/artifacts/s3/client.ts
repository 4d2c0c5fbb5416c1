/**
 * The SDK's client, with limits for each request.
 */
import { S3Client, type S3ClientConfig } from "@aws-sdk/client-s3";
import type { S3StoreConfig } from "./config.ts";

/** Milliseconds to connect, and without a byte on a connection. */
const timeoutsMs = { connect: 5_000, idle: 20_000 };

/** Attempts of a request that fails for a moment. The SDK waits longer before each. */
const maxAttempts = 4;

/** Open connections of a store. */
const maxConnections = 64;

const usualRegion = "us-east-1";

/** Commands that create objects. */
const creates: ReadonlySet<string> = new Set(["PutObjectCommand", "CreateMultipartUploadCommand"]);

/** Makes no connection yet. The caller destroys it. */
export function createClient(config: S3StoreConfig): S3Client {
  const checksums = config.checksums === "supported" ? "WHEN_SUPPORTED" : "WHEN_REQUIRED";
  const agent = { keepAlive: true, maxSockets: maxConnections };
  const client = new S3Client({
    ...regionOf(config),
    ...(config.endpoint !== undefined && { endpoint: config.endpoint }),
    ...(config.credentials !== undefined && { credentials: config.credentials }),
    forcePathStyle: config.isPathStyle,
    requestChecksumCalculation: checksums,
    responseChecksumValidation: checksums,
    maxAttempts,
    // Servers and proxies that do not answer it cost a second for each part, and the SDK would
    // open a connection for each.
    expectContinueHeader: false,
    requestHandler: {
      connectionTimeout: timeoutsMs.connect,
      socketTimeout: timeoutsMs.idle,
      httpAgent: agent,
      httpsAgent: agent,
    },
  });
  const { encryption, kmsKeyId } = config;
  const encrypted = {
    ...(encryption !== undefined && { ServerSideEncryption: encryption }),
    ...(kmsKeyId !== undefined && { SSEKMSKeyId: kmsKeyId }),
  };
  // Marks, too: they hold answers, and a bucket's policy may refuse what is not encrypted.
  client.middlewareStack.add(
    (next, { commandName = "" }) =>
      (args) =>
        next(creates.has(commandName) ? { ...args, input: { ...args.input, ...encrypted } } : args),
    { step: "initialize", name: "encryption" },
  );
  client.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args);
      const { headers } = result.response as { readonly headers?: Record<string, string> };
      serverTimes.set(result.output as object, Date.parse(headers?.["date"] ?? ""));
      return result;
    },
    { step: "deserialize", priority: "high", name: "serverTime" },
  );
  return client;
}

/** Servers other than AWS's mostly have none of their own, and take the one that AWS began with. */
function regionOf({ region, endpoint }: S3StoreConfig): Pick<S3ClientConfig, "region"> {
  if (region !== undefined) return { region };
  if (endpoint === undefined) return {};
  let found: Promise<string> | undefined;
  // The SDK asks for each request, and a client takes as long to make as a request to be answered.
  return { region: () => (found ??= regionOfSdk()) };
}

/** From the SDK's own sources. */
async function regionOfSdk(): Promise<string> {
  const client = new S3Client({});
  try {
    return await client.config.region();
  } catch {
    return usualRegion;
  } finally {
    client.destroy();
  }
}

/** The SDK leaves the header out of what it returns. */
const serverTimes = new WeakMap<object, number>();

/** Epoch milliseconds of a response by the server's clock; NaN without its header Date. */
export function serverTimeOf(output: { readonly $metadata: unknown }): number {
  return serverTimes.get(output) ?? NaN;
}
