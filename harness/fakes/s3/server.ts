/**
 * An S3 server in memory, for tests and trials: it verifies signatures, checksums and conditions,
 * and fails on command.
 */
import { once } from "node:events";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Fault, type FaultKind, Faults, readUntil, sendBody } from "../faults.ts";
import { readBody, refuseChecksums } from "./body.ts";
import { S3Error, escapeXml } from "./errors.ts";
import { Bucket } from "./objects.ts";
import { type S3Answer, perform } from "./operations.ts";
import { type S3Operation, type S3Request, readRequest } from "./request.ts";
import { type S3Credentials, verifySignature } from "./signature.ts";

/** What a server is like. */
export interface FakeS3Options {
  readonly buckets: readonly string[];
  /** A free one unless told. */
  readonly port?: number;
  /** Whether it takes writes whatever their conditions, as old look-alikes do. */
  readonly ignoresConditions?: boolean;
  /** Whether it refuses checksums other than Content-MD5, as older servers do. */
  readonly refusesChecksums?: boolean;
  /** Region for which requests are signed; `us-east-1` unless told. */
  readonly region?: string;
  /** Milliseconds by which its clock is ahead. */
  readonly clockOffsetMs?: number;
  /** Whether its answers leave out its time, by which clients correct theirs. */
  readonly hidesTime?: boolean;
}

const keys = { accessKeyId: "fake-access-key", secretAccessKey: "fake-secret-key" };

/** Listens on loopback. Rejects with the system's error. The caller disposes it. */
export async function startFakeS3(options: FakeS3Options): Promise<FakeS3> {
  const fake = new FakeS3(options);
  await fake.listen(options.port ?? 0);
  return fake;
}

/** A server; see {@link startFakeS3}. */
export class FakeS3 implements AsyncDisposable {
  readonly accessKeyId = keys.accessKeyId;
  readonly secretAccessKey = keys.secretAccessKey;
  readonly region: string;
  readonly #buckets: ReadonlyMap<string, Bucket>;
  readonly #clockOffsetMs: number;
  readonly #hidesTime: boolean;
  readonly #refusesChecksums: boolean;
  readonly #faults = new Faults<S3Operation>();
  readonly #server: Server;
  readonly #counts = new Map<S3Operation, number>();

  constructor(options: FakeS3Options) {
    const { buckets, ignoresConditions = false, clockOffsetMs = 0, hidesTime = false } = options;
    this.region = options.region ?? "us-east-1";
    this.#refusesChecksums = options.refusesChecksums ?? false;
    this.#buckets = new Map(buckets.map((name) => [name, new Bucket(ignoresConditions)]));
    this.#clockOffsetMs = clockOffsetMs;
    this.#hidesTime = hidesTime;
    this.#server = createServer((message, response) => {
      // Of a connection that breaks there is nobody to tell.
      this.#serve(message, response).catch(() => response.destroy());
    });
  }

  async listen(port: number): Promise<void> {
    this.#server.listen(port, "127.0.0.1");
    await once(this.#server, "listening");
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** What is in a bucket. Throws S3Error `NoSuchBucket`. */
  bucket(name: string): Bucket {
    const bucket = this.#buckets.get(name);
    if (bucket === undefined) throw new S3Error(404, "NoSuchBucket");
    return bucket;
  }

  /** Requests of an operation so far. */
  count(operation: S3Operation): number {
    return this.#counts.get(operation) ?? 0;
  }

  /** Lets requests fail, until it has happened or the result is disposed. */
  fault(rule: Fault<S3Operation, FaultKind>): Disposable {
    return this.#faults.add(rule);
  }

  /** Cuts all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }

  async #serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = readRequest(message);
    this.#counts.set(request.operation, this.count(request.operation) + 1);
    const fault = this.#faults.take(request.operation);
    if (fault?.kind === "stall") return;
    if (fault?.kind === "cut request") return void response.destroy();
    if (fault?.kind === "stall request") return void readUntil(message, fault.afterBytes);
    const body = await readBody(message);
    const answer = this.#answer(request, body, Object.keys(message.headers), fault);
    if (fault?.kind === "lose answer") return void response.destroy();
    this.#send(response, request, answer, fault);
  }

  #answer(
    request: S3Request,
    body: Buffer,
    headers: readonly string[],
    fault: FaultKind | undefined,
  ): S3Answer {
    try {
      if (fault?.kind === "error") throw new S3Error(fault.status, fault.code);
      const account: S3Credentials = { ...keys, region: this.region };
      verifySignature(request, body, account, Date.now() + this.#clockOffsetMs);
      if (this.#refusesChecksums) refuseChecksums(headers);
      return perform(request, this.bucket(request.bucket), body, headers);
    } catch (error) {
      if (!(error instanceof S3Error)) throw error;
      const { status, code, message } = error;
      const text = `<Error><Code>${code}</Code><Message>${escapeXml(message)}</Message></Error>`;
      return { status, headers: { "content-type": "application/xml" }, body: Buffer.from(text) };
    }
  }

  #send(
    response: ServerResponse,
    { method }: S3Request,
    { status, headers, body }: S3Answer,
    fault: FaultKind | undefined,
  ): void {
    const date = new Date(Date.now() + this.#clockOffsetMs).toUTCString();
    const time = this.#hidesTime ? {} : { date };
    response.sendDate = false;
    response.writeHead(status, { ...time, ...headers, "content-length": body.byteLength });
    if (method === "HEAD") return void response.end();
    sendBody(response, body, fault);
  }
}
