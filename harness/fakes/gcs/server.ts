/**
 * A server of Google Cloud Storage in memory, for tests and trials: it verifies signatures of
 * tokens, checksums and conditions, and fails on command.
 */
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Fault, type FaultKind, Faults, readUntil, sendBody } from "../faults.ts";
import { type GcsAnswer, json } from "./answers.ts";
import { GcsFakeError } from "./errors.ts";
import { Bucket, maxContentBytes } from "./objects.ts";
import { perform } from "./operations.ts";
import { type GcsOperation, type GcsRequest, readRequest } from "./request.ts";
import { TokenIssuer, invalidGrant } from "./tokens.ts";

/** A fault. */
export type GcsFaultKind =
  | FaultKind
  /** Keeps only so many bytes of a part of an upload. */
  | { readonly kind: "keep part"; readonly bytes: number };

/** What a server is like. */
export interface FakeGcsOptions {
  readonly buckets: readonly string[];
  /** A free one unless told. */
  readonly port?: number;
  /** Whether it takes writes whatever their conditions, as some emulators do. */
  readonly ignoresConditions?: boolean;
  /** Whether it takes requests without a token, as emulators do. */
  readonly isOpen?: boolean;
  /** Milliseconds by which its clock is ahead. */
  readonly clockOffsetMs?: number;
}

/** Listens on loopback. Rejects with the system's error. The caller disposes it. */
export async function startFakeGcs(options: FakeGcsOptions): Promise<FakeGcs> {
  const fake = new FakeGcs(options);
  await fake.start(options.port ?? 0);
  return fake;
}

/** A server; see {@link startFakeGcs}. */
export class FakeGcs implements AsyncDisposable {
  readonly #buckets: ReadonlyMap<string, Bucket>;
  readonly #faults = new Faults<GcsOperation, GcsFaultKind>();
  readonly #tokens: TokenIssuer;
  readonly #isOpen: boolean;
  readonly #nowMs: () => number;
  readonly #server: Server;
  #directory = "";

  constructor(options: FakeGcsOptions) {
    const { buckets, ignoresConditions = false, isOpen = false, clockOffsetMs = 0 } = options;
    this.#nowMs = () => Date.now() + clockOffsetMs;
    this.#buckets = new Map(
      buckets.map((name) => [name, new Bucket(name, ignoresConditions, this.#nowMs)]),
    );
    this.#tokens = new TokenIssuer(this.#nowMs);
    this.#isOpen = isOpen;
    this.#server = createServer((message, response) => {
      // Of a connection that breaks there is nobody to tell.
      this.#serve(message, response).catch(() => response.destroy());
    });
  }

  async start(port: number): Promise<void> {
    this.#server.listen(port, "127.0.0.1");
    await once(this.#server, "listening");
    this.#directory = await mkdtemp(join(tmpdir(), "fake-gcs-"));
    const token = join(this.#directory, "token");
    const files = {
      [token]: this.#tokens.providerToken(),
      [this.credentialsFile]: this.#tokens.identity(`${this.endpoint}/token`, token),
      [this.serviceAccountFile]: this.#tokens.serviceAccount(),
    };
    for (const [path, content] of Object.entries(files))
      await writeFile(path, content, { mode: 0o600 });
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Path of the credentials of an identity that may do everything. */
  get credentialsFile(): string {
    return join(this.#directory, "credentials.json");
  }

  /** Path of the key of the identity's service account. */
  get serviceAccountFile(): string {
    return join(this.#directory, "service-account.json");
  }

  /** Content of a bucket. Throws GcsFakeError. */
  bucket(name: string): Bucket {
    const bucket = this.#buckets.get(name);
    if (bucket !== undefined) return bucket;
    throw new GcsFakeError(404, "notFound", "The specified bucket does not exist.");
  }

  /** Lets requests fail, until it has happened or the result is disposed. */
  fault(rule: Fault<GcsOperation, GcsFaultKind>): Disposable {
    return this.#faults.add(rule);
  }

  /** Connections that are open. */
  async connections(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
    });
  }

  /** Cuts all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    let fault: GcsFaultKind | undefined;
    const answer = await this.#answer(message, (taken) => (fault = taken));
    if (isStalled(fault)) return;
    if (answer === undefined || fault?.kind === "lose answer") return void response.destroy();
    const { status, headers, body } = answer;
    const date = new Date(this.#nowMs()).toUTCString();
    response.writeHead(status, { date, ...headers, "content-length": body.byteLength });
    sendBody(response, body, fault?.kind === "keep part" ? undefined : fault);
  }

  /** Undefined where the connection is cut. */
  async #answer(
    message: IncomingMessage,
    onFault: (fault: GcsFaultKind | undefined) => void,
  ): Promise<GcsAnswer | undefined> {
    try {
      const request = readRequest(message);
      const fault = this.#faults.take(request.operation);
      onFault(fault);
      // Reads on, so that the server notices the end of the connection.
      if (fault?.kind === "stall") message.resume();
      if (fault?.kind === "stall request") readUntil(message, fault.afterBytes);
      if (isStalled(fault) || fault?.kind === "cut request") return undefined;
      const body = await readBody(message);
      if (fault?.kind === "error")
        throw request.operation === "token"
          ? invalidGrant(fault.code)
          : new GcsFakeError(fault.status, fault.code);
      return this.#perform(request, body, fault);
    } catch (error) {
      if (!(error instanceof GcsFakeError)) throw error;
      const { status, reason, message: text } = error;
      if (reason === "invalid_grant")
        return json({ error: reason, error_description: text }, status);
      return json(error.toJSON(), status);
    }
  }

  #perform(request: GcsRequest, body: Buffer, fault: GcsFaultKind | undefined): GcsAnswer {
    if (request.operation === "token") return json(this.#tokens.exchange(body));
    if (!this.#isOpen) this.#tokens.verify(request.header("authorization"));
    const keptBytes = fault?.kind === "keep part" ? fault.bytes : undefined;
    return perform(request, this.bucket(request.bucket), body, keptBytes);
  }
}

/** Whether a request gets no answer. */
function isStalled(fault: GcsFaultKind | undefined): boolean {
  return fault?.kind === "stall" || fault?.kind === "stall request";
}

/** Throws GcsFakeError when it is too large. */
async function readBody(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > maxContentBytes) throw new GcsFakeError(413, "uploadTooLarge");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
