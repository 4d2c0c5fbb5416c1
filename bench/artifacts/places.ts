/**
 * The artifact stores of the benchmark, each beside the bare means to move the same bytes.
 */
import { EventEmitter } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { copyFile, mkdir, open, rename, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  PutObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";
import { Storage } from "@google-cloud/storage";
import { type StoreConfig, openCachedStore, openStore } from "../../worker/artifacts/open.ts";
import type { ArtifactStore } from "../../worker/artifacts/store.ts";
import { readConfig } from "../../worker/config/config.ts";
import { systemClock } from "../../worker/support/clock.ts";
import { createLogger } from "../../worker/telemetry/logger.ts";
import { startFake } from "./server.ts";

/** Bytes of the cache: it keeps no artifact of more than a quarter of it. */
const cacheBytes = 1_000_000_000;

/** Moves files to names and back without the worker's code. */
export interface Bare {
  put(path: string, name: string): Promise<void>;
  get(name: string, path: string): Promise<void>;
  remove(name: string): Promise<void>;
}

/** A store of the benchmark. */
export interface Place {
  readonly name: string;
  /** Undefined where the store is one of another place, too. */
  readonly config: StoreConfig | undefined;
  readonly store: ArtifactStore;
  readonly bare: Bare;
  /** Whether the sandbox starts cold, and mounts inputs of the cache. Only they are moved then. */
  readonly bindsShared?: boolean;
}

/** Opens all stores, with their servers. The stack owns them. */
export async function openPlaces(
  base: string,
  stack: AsyncDisposableStack,
): Promise<readonly Place[]> {
  const s3 = await openS3(stack);
  const gcs = await openGcs(stack);
  const files = await openFiles(base, stack);
  const cachedS3 = await cached(s3, base, stack);
  const mounted = { ...cachedS3, name: `${cachedS3.name}, mounted`, bindsShared: true };
  return [files, s3, gcs, cachedS3, await cached(gcs, base, stack), mounted];
}

async function openFiles(base: string, stack: AsyncDisposableStack): Promise<Place> {
  const [artifacts, bare] = [join(base, "store"), join(base, "bare")];
  await mkdir(bare);
  const config = { kind: "filesystem", basePath: artifacts } as const;
  const store = stack.use(await openStore(config));
  return { name: "filesystem", config, store, bare: bareFiles(bare) };
}

/** A save that survives a crash under its name, as fsync(2) describes it. */
function bareFiles(directory: string): Bare {
  return {
    async put(path, name) {
      const unfinished = join(directory, `${name}.unfinished`);
      await copyFile(path, unfinished);
      await sync(unfinished);
      await rename(unfinished, join(directory, name));
      await sync(directory);
    },
    get: (name, path) => copyFile(join(directory, name), path),
    remove: (name) => unlink(join(directory, name)),
  };
}

async function sync(path: string): Promise<void> {
  await using file = await open(path);
  await file.sync();
}

async function openS3(stack: AsyncDisposableStack): Promise<Place> {
  const environment = stack.use(await startFake("fake-s3")).variables;
  const config = storeOf(environment);
  const store = stack.use(await openStore(config));
  return { name: "S3", config, store, bare: bareS3(environment, stack) };
}

/** The SDK with its defaults. */
function bareS3(environment: Readonly<Record<string, string>>, stack: AsyncDisposableStack): Bare {
  const client = stack.adopt(
    new S3Client({
      region: environment["AWS_REGION"] ?? "",
      endpoint: environment["ARTIFACT_S3_ENDPOINT"] ?? "",
      forcePathStyle: true,
    }),
    (open) => open.destroy(),
  );
  const Bucket = environment["ARTIFACT_S3_BUCKET"] ?? "";
  return {
    async put(path, Key) {
      const { size: ContentLength } = await stat(path);
      const Body = createReadStream(path);
      await client.send(new PutObjectCommand({ Bucket, Key, Body, ContentLength }));
    },
    async get(Key, path) {
      const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
      await pipeline(Body as Readable, createWriteStream(path));
    },
    async remove(Key) {
      await client.send(new DeleteObjectCommand({ Bucket, Key }));
    },
  };
}

async function openGcs(stack: AsyncDisposableStack): Promise<Place> {
  const environment = stack.use(await startFake("fake-gcs")).variables;
  const config = storeOf(environment);
  const store = stack.use(await openStore(config));
  return { name: "Cloud Storage", config, store, bare: bareGcs(environment) };
}

/** The SDK with its defaults. */
function bareGcs(environment: Readonly<Record<string, string>>): Bare {
  const apiEndpoint = environment["ARTIFACT_GCS_ENDPOINT"] ?? "";
  const storage = new Storage({
    apiEndpoint,
    projectId: "none",
    useAuthWithCustomEndpoint: true,
  });
  const bucket = storage.bucket(environment["ARTIFACT_GCS_BUCKET"] ?? "");
  return {
    async put(path, destination) {
      // The upload in several requests takes no credentials to another server than Google's.
      await bucket.upload(path, { destination, resumable: false });
    },
    async get(name, destination) {
      // The SDK's own pipelines put more listeners on a stream than Node takes for usual.
      const usual = EventEmitter.defaultMaxListeners;
      EventEmitter.defaultMaxListeners = 2 * usual;
      try {
        await bucket.file(name).download({ destination });
      } finally {
        EventEmitter.defaultMaxListeners = usual;
      }
    },
    async remove(name) {
      await bucket.file(name).delete();
    },
  };
}

/** A place behind a cache that has each input after the first round. */
async function cached(
  { name, config, bare }: Place,
  base: string,
  stack: AsyncDisposableStack,
): Promise<Place> {
  if (config === undefined) throw new Error(`${name} has no store of its own`);
  const directory = join(base, `cache of ${name}`);
  const cache = { directory, maxBytes: cacheBytes, minFreeBytes: 0 };
  const host = { clock: systemClock, log: createLogger("warn", process.stderr.fd) };
  const store = stack.use(await openCachedStore(config, cache, host));
  return { name: `${name} behind the cache`, config: undefined, store, bare };
}

/** The store that a worker with this environment opens. */
function storeOf(environment: Readonly<Record<string, string>>): StoreConfig {
  const required = { SAM_NAMESPACE: "bench", DEV_BROKER_HOST: "127.0.0.1" };
  return readConfig({ ...environment, ...required }).artifacts.store;
}
