/**
 * Who may use the console: browsers that have shown its token, from pages of its own.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../support/clock.ts";
import { isLoopback } from "../../support/loopback.ts";
import { HttpError } from "./failure.ts";

/** Sessions at once; the oldest ends first. */
const maxSessions = 64;
const sessionMs = 12 * 3_600_000;
/** Wrong tokens in a minute, after which every token is refused. */
const maxFailures = 30;
const failureWindowMs = 60_000;
const secretBytes = 32;

/** A token that nobody guesses. */
export function newToken(): string {
  return randomBytes(secretBytes).toString("base64url");
}

/** What the guard knows. */
export interface GuardOptions {
  readonly token: string;
  /** Whether only this machine reaches the server. */
  readonly isLocal: boolean;
  readonly clock: Pick<Clock, "monotonicMs">;
}

/** Checks requests before anything else is done with them. */
export class Guard {
  readonly #options: GuardOptions;
  readonly #sessions: LRUCache<string, true>;
  #failures = 0;
  #failuresSinceMs = -Infinity;

  constructor(options: GuardOptions) {
    this.#options = options;
    this.#sessions = new LRUCache({
      max: maxSessions,
      ttl: sessionMs,
      ttlResolution: 0,
      perf: { now: () => options.clock.monotonicMs() },
    });
  }

  /**
   * Refuses what another page sends (OWASP, Cross-Site Request Forgery Prevention), and names that
   * an attacker's name server leads here (DNS rebinding). Throws HttpError.
   */
  checkOrigin({ method, headers }: IncomingMessage): void {
    const { host, origin } = headers;
    if (host === undefined || !URL.canParse(`http://${host}`))
      throw new HttpError(400, "BAD_REQUEST", "The header Host is missing or unusable");
    if (this.#options.isLocal && !isLoopback(new URL(`http://${host}`).hostname))
      throw new HttpError(403, "FORBIDDEN", "This console is for the names of this machine");
    const site = headers["sec-fetch-site"];
    const isForeign = site !== undefined && site !== "same-origin" && site !== "none";
    if (method === "GET" || method === "HEAD") {
      if (isForeign && headers["sec-fetch-mode"] !== "navigate") throw foreign();
      return;
    }
    if (isForeign || origin === undefined || !isAt(origin, host)) throw foreign();
  }

  /** The value of a cookie for whoever has the token. Throws HttpError. */
  logIn(token: string): string {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs - this.#failuresSinceMs > failureWindowMs) {
      this.#failures = 0;
      this.#failuresSinceMs = nowMs;
    }
    if (this.#failures >= maxFailures)
      throw new HttpError(429, "TOO_MANY_ATTEMPTS", "Too many wrong tokens: wait a minute");
    if (!isEqual(token, this.#options.token)) {
      this.#failures++;
      throw new HttpError(401, "WRONG_TOKEN", "This is not the token of this console");
    }
    const session = newToken();
    this.#sessions.set(session, true);
    return session;
  }

  logOut(request: IncomingMessage): void {
    this.#sessions.delete(sessionOf(request));
  }

  /** Throws HttpError for a request without a session. */
  requireSession(request: IncomingMessage): void {
    if (!this.#sessions.has(sessionOf(request)))
      throw new HttpError(401, "NO_SESSION", "Enter the token of this console");
  }
}

/** The header that gives a browser its session; empty to end it. */
export function sessionCookie(request: IncomingMessage, session: string): string {
  const age = session === "" ? 0 : sessionMs / 1000;
  return `${cookieName(request)}=${session}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${age}`;
}

/** Cookies are of a host, with all its ports. */
function cookieName({ socket }: IncomingMessage): string {
  return `str-console-${socket.localPort ?? 0}`;
}

function sessionOf(request: IncomingMessage): string {
  const prefix = `${cookieName(request)}=`;
  const cookies = (request.headers.cookie ?? "").split("; ");
  return cookies.find((each) => each.startsWith(prefix))?.slice(prefix.length) ?? "";
}

function isAt(origin: string, host: string): boolean {
  return URL.canParse(origin) && new URL(origin).host === new URL(`http://${host}`).host;
}

function foreign(): HttpError {
  return new HttpError(403, "FORBIDDEN", "This request comes from another page");
}

/** Takes the same time for every text. */
function isEqual(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}
