/**
 * S3 servers that this project did not write, as processes on loopback.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, vi } from "vitest";
import type { MarkStore } from "../../../worker/artifacts/marks.ts";
import type { S3Credentials } from "../../../worker/artifacts/s3/config.ts";
import { freePorts } from "../brokers/rabbitmq-ports.ts";
import { NotInstalled } from "../installed-once.ts";
import { quickPlace } from "../sandboxes/quick-place.ts";
import { programEnvironment } from "../workers/program-environment.ts";
import { S3Bucket } from "./bucket.ts";

/** Milliseconds until a server answers, on two busy cores. */
const startTimeoutMs = 60_000;

/** Milliseconds to build what the slowest server needs, and to start it. */
const setUpTimeoutMs = 900_000;

/** A program that serves S3 on a port of loopback. */
export interface S3Program {
  readonly command: readonly [string, ...string[]];
  readonly variables: Readonly<Record<string, string>>;
}

/** A server of one make. */
export interface S3Make {
  readonly credentials: S3Credentials;
  /** A program that keeps its files below a directory. Rejects with NotInstalled. */
  install(directory: string, port: number): Promise<S3Program>;
}

/** A running server. */
export class S3Server implements AsyncDisposable {
  readonly endpoint: string;
  readonly credentials: S3Credentials;
  /** The bucket that stores share. */
  readonly artifacts: S3Bucket;
  readonly #owned = new AsyncDisposableStack();

  private constructor(port: number, credentials: S3Credentials) {
    this.endpoint = `http://127.0.0.1:${port}`;
    this.credentials = credentials;
    this.artifacts = this.bucket("artifacts");
  }

  /** Resolves when the server has made a bucket. */
  static async start({ install, credentials }: S3Make): Promise<S3Server> {
    const [port = 0] = await freePorts(1);
    await using failed = new AsyncDisposableStack();
    const server = failed.use(new S3Server(port, credentials));
    const directory = await mkdtemp(join(quickPlace, "s3-server-"));
    server.#owned.defer(() => rm(directory, { recursive: true, force: true }));
    const { command, variables } = await install(directory, port);
    // It ends with this process, also when that is killed.
    const child = spawn("setpriv", ["--pdeathsig", "KILL", ...command], {
      env: { ...programEnvironment(), ...variables },
      cwd: directory,
      stdio: "ignore",
    });
    server.#owned.defer(() => ended(child));
    const wait = { timeout: startTimeoutMs, interval: 200 };
    await vi.waitFor(() => server.artifacts.create(), wait);
    failed.move();
    return server;
  }

  /** A bucket that need not exist. The server disposes it. */
  bucket(name: string): S3Bucket {
    const { endpoint, credentials } = this;
    return this.#owned.use(new S3Bucket(name, { endpoint, credentials }));
  }

  /** In a bucket of their own. */
  async twoViewsOfMarks(): Promise<readonly [MarkStore, MarkStore]> {
    const bucket = this.bucket(`marks-${randomUUID()}`);
    await bucket.create();
    return bucket.twoViewsOfMarks();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned.disposeAsync();
  }
}

async function ended(child: ChildProcess): Promise<void> {
  const exited = once(child, "exit");
  if (child.kill("SIGKILL")) await exited;
}

/** A server for the tests of a file, which are skipped, with the reason, where there is none. */
export function useS3Server(make: S3Make): () => S3Server {
  let server: S3Server | undefined;
  let missing: string | undefined;
  beforeAll(async () => {
    try {
      server = await S3Server.start(make);
    } catch (error) {
      if (!(error instanceof NotInstalled)) throw error;
      missing = error.message;
    }
  }, setUpTimeoutMs);
  afterAll(() => server?.[Symbol.asyncDispose]());
  beforeEach(({ skip }) => skip(missing !== undefined, missing));
  return () => server!;
}
