/**
 * Requests of the JSON API, authenticated by the SDK. Its own methods take no signal: an abort
 * would leave their connections open.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Storage } from "@google-cloud/storage";
import { type AuthClient, PassThroughClient } from "google-auth-library";
import { backoffDelays } from "../../support/backoff.ts";
import { abortable } from "../../support/timeout.ts";
import type { GcsStoreConfig } from "./config.ts";
import { Connections } from "./connections.ts";
import { GcsError, failureCodes, isTransient, isUnauthorized } from "./failures.ts";

const googleEndpoint = "https://storage.googleapis.com";

/** Attempts of a request that fails for a moment, and the waits before the later ones. */
const maxAttempts = 4;
const waitsMs = { baseMs: 250, capMs: 4_000, random: () => 0.5 + Math.random() / 2 };

/** A request. Its body is a buffer, so that it can be repeated. */
export interface GcsRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** A path at the endpoint, or the whole URL of an upload. */
  readonly url: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** What the answer's data are; JSON by default. */
  readonly answers?: "json" | "stream";
  /** Statuses of answers besides 2xx. */
  readonly accepts?: readonly number[];
  /** Whether it is repeated when it fails for a moment; it is by default. */
  readonly isRepeated?: boolean;
}

/** An answer. */
export interface GcsResponse<Data> {
  readonly status: number;
  readonly headers: Headers;
  readonly data: Data;
}

/** A connection to a server. The owner disposes it. */
export class GcsClient implements Disposable {
  readonly #connections = new Connections();
  readonly #storage: Storage;
  /** The API's URL. */
  readonly #endpoint: string;
  readonly #isAnonymous: boolean;
  #auth: Promise<AuthClient> | undefined;

  /** Makes no connection yet. */
  constructor({ endpoint = googleEndpoint, isAnonymous }: GcsStoreConfig) {
    const agent = (url: URL) => this.#connections.agentFor(url);
    const transporterOptions = { agent };
    this.#storage = new Storage({
      // Given in any case: the environment has another one for emulators.
      apiEndpoint: endpoint,
      // Objects need none, and the SDK would take seconds to find one.
      projectId: "none",
      ...(isAnonymous && { authClient: new PassThroughClient({ transporterOptions }) }),
      clientOptions: { transporterOptions },
    });
    this.#endpoint = this.#storage.apiEndpoint;
    this.#isAnonymous = isAnonymous;
  }

  /** Rejects with GcsError, or with the signal's reason. An abort ends the connection. */
  async request<Data>(request: GcsRequest, signal: AbortSignal): Promise<GcsResponse<Data>> {
    const waits = backoffDelays(waitsMs);
    let isRefreshed = this.#isAnonymous;
    for (let attempt = 1; ; attempt++) {
      // Repeated by the SDK already.
      const access = await this.#authenticate(attempt, signal);
      try {
        return await this.#send<Data>(request, access, attempt, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!isRefreshed && isUnauthorized(error)) {
          // By the server's clock it has expired, or it was revoked.
          this.#forget(access);
          isRefreshed = true;
          continue;
        }
        const isLast = attempt === maxAttempts || request.isRepeated === false;
        if (isLast || !isTransient(error)) throw error;
        await sleep(waits.next().value, undefined, { signal });
      }
    }
  }

  [Symbol.dispose](): void {
    this.#connections[Symbol.dispose]();
  }

  async #send<Data>(
    request: GcsRequest,
    { auth, headers }: Access,
    attempt: number,
    signal: AbortSignal,
  ): Promise<GcsResponse<Data>> {
    const { method, query, body, answers = "json", accepts = [] } = request;
    for (const [name, value] of Object.entries(request.headers ?? {})) headers.set(name, value);
    try {
      return await auth.transporter.request<Data>({
        ...{ method, headers, signal, responseType: answers },
        url: new URL(request.url, this.#endpoint),
        ...(query !== undefined && { params: query }),
        ...(body !== undefined && { data: body }),
        // It would look at each byte of a body; nothing of the error is kept.
        errorRedactor: false,
        // 308 is no redirect here, and what is stored compressed comes so.
        ...{ redirect: "manual", compress: false },
        validateStatus: (status) => (status >= 200 && status < 300) || accepts.includes(status),
      });
    } catch (error) {
      signal.throwIfAborted();
      throw toGcsError(error, attempt);
    }
  }

  async #authenticate(attempt: number, signal: AbortSignal): Promise<Access> {
    try {
      this.#auth ??= this.#storage.authClient.getClient();
      const auth = await abortable(this.#auth, signal);
      return { auth, headers: new Headers(await abortable(auth.getRequestHeaders(), signal)) };
    } catch (error) {
      signal.throwIfAborted();
      this.#auth = undefined;
      throw toCredentialsError(error, attempt);
    }
  }

  /** Lets the next request read the credentials again, unless one has done so already. */
  #forget({ auth }: Access): void {
    const { authClient } = this.#storage;
    if (authClient.cachedCredential !== auth) return;
    authClient.cachedCredential = authClient.jsonContent = null;
    this.#auth = undefined;
  }
}

/** The SDK's client for the credentials, and what it adds to a request. */
interface Access {
  readonly auth: AuthClient;
  readonly headers: Headers;
}

/** What is read of an error of the SDK, of Node or of the network. */
interface Failure {
  readonly message?: unknown;
  readonly code?: unknown;
  readonly status?: number;
  readonly response?: { readonly status?: number; readonly data?: unknown };
}

function toGcsError(error: unknown, attempts: number): GcsError {
  const { message, status, response, code } = (error ?? {}) as Failure;
  const text = typeof response?.data === "string" ? messageIn(response.data) : message;
  // The URL of an upload lets anyone write who knows it.
  const withoutUrls = String(text).replace(/https?:\/\/\S+/g, "the server");
  return new GcsError(
    withoutUrls,
    response?.status ?? status,
    typeof code === "string" ? code : undefined,
    attempts,
  );
}

/** Of an error that came as a stream, or not as JSON. */
function messageIn(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown } };
    if (typeof error?.message === "string") return error.message;
  } catch {
    // It is plain text.
  }
  return text;
}

/** Whether a code of Node's is one of a file that cannot be read. */
function isOfFile(code: string | undefined): boolean {
  return code !== undefined && ["ENOENT", "EACCES", "EISDIR", "ENOTDIR"].includes(code);
}

function toCredentialsError(error: unknown, attempts: number): GcsError {
  const { message, status, code } = toGcsError(error, attempts);
  const failed = (shownStatus: number | undefined, shownCode: string | undefined): GcsError =>
    new GcsError(message, shownStatus, shownCode, attempts);
  if (/\biat\b/.test(message)) return failed(status, failureCodes.skewedClock);
  if (status !== undefined && status < 429) return failed(401, code);
  const isAway = status !== undefined || (/^E[A-Z]/.test(code ?? "") && !isOfFile(code));
  return failed(status, isAway ? code : failureCodes.noCredentials);
}
