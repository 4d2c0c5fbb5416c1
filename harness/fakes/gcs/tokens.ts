/**
 * Access tokens: "Workload Identity Federation", which exchanges the token of an identity provider
 * for one of Google's, and tokens that a service account signs itself. Google's library for Node
 * exchanges those of service accounts at Google only.
 */
import { type KeyObject, generateKeyPairSync, randomUUID, sign, verify } from "node:crypto";
import { GcsFakeError } from "./errors.ts";

const email = "fake-worker@fake-project.iam.gserviceaccount.com";
const audience = "//iam.googleapis.com/fake-pool/fake-provider";
const subjectTokenType = "urn:ietf:params:oauth:token-type:jwt";
const grantType = "urn:ietf:params:oauth:grant-type:token-exchange";
const scope = /(?:^|\s)https:\/\/www\.googleapis\.com\/auth\/(?:cloud-platform|devstorage\.\S+)/;

/** Seconds of an access token, of a provider's token, and between two clocks. */
const [lifetimeSeconds, providerSeconds, maxSkewSeconds] = [3_600, 365 * 24 * 3_600, 600];

/** The parts of a signed token that the double reads. */
interface Claims {
  readonly iss?: string;
  readonly aud?: string;
  readonly scope?: string;
  readonly iat?: number;
  readonly exp?: number;
}

/** An identity with two sorts of credentials, and the tokens that it got. */
export class TokenIssuer {
  readonly #privateKey: KeyObject;
  readonly #publicKey: KeyObject;
  readonly #nowMs: () => number;
  readonly #expiriesMs = new Map<string, number>();

  constructor(nowMs: () => number) {
    const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    this.#privateKey = privateKey;
    this.#publicKey = publicKey;
    this.#nowMs = nowMs;
  }

  /** Credentials by a provider's token, which is in a file. */
  identity(token_url: string, file: string): string {
    return JSON.stringify({
      type: "external_account",
      audience,
      subject_token_type: subjectTokenType,
      token_url,
      credential_source: { file },
    });
  }

  /** The provider's token, by the clock of this machine, which is the worker's. */
  providerToken(): string {
    const iat = Math.floor(Date.now() / 1000);
    const claims = { iss: email, aud: audience, iat, exp: iat + providerSeconds };
    const parts = [{ alg: "RS256", typ: "JWT" }, claims];
    const text = parts.map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"));
    const signature = sign("RSA-SHA256", Buffer.from(text.join(".")), this.#privateKey);
    return [...text, signature.toString("base64url")].join(".");
  }

  /** Credentials of a service account that signs its tokens, as it does in other universes. */
  serviceAccount(): string {
    return JSON.stringify({
      type: "service_account",
      universe_domain: "fake.invalid",
      project_id: "fake-project",
      private_key_id: "fake-key",
      private_key: this.#privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
      client_email: email,
    });
  }

  /** Exchanges a provider's token. Throws GcsFakeError. */
  exchange(body: Buffer): object {
    const form = new URLSearchParams(body.toString());
    const token = form.get("subject_token") ?? "";
    if (!this.#isSigned(token)) throw invalidGrant("Invalid JWT Signature.");
    const { aud, iat = 0, exp = 0 } = claimsOf(token);
    const isUsable =
      form.get("grant_type") === grantType && form.get("audience") === audience && aud === audience;
    if (!isUsable) throw invalidGrant("The subject token cannot be exchanged.");
    const nowSeconds = this.#nowMs() / 1000;
    const isTimely = iat <= nowSeconds + maxSkewSeconds && exp > nowSeconds;
    if (!isTimely) throw invalidGrant("Check your iat and exp values in the JWT claim.");
    if (!scope.test(form.get("scope") ?? "")) throw invalidGrant("Invalid scope.");
    const access_token = `fake-access-token-${randomUUID()}`;
    this.#expiriesMs.set(access_token, this.#nowMs() + lifetimeSeconds * 1000);
    const issued_token_type = "urn:ietf:params:oauth:token-type:access_token";
    return { access_token, issued_token_type, token_type: "Bearer", expires_in: lifetimeSeconds };
  }

  /** Throws GcsFakeError unless the header carries a usable token of this identity. */
  verify(authorization: string | undefined): void {
    const [, token = ""] = /^Bearer (.+)$/.exec(authorization ?? "") ?? [];
    if (token.includes(".") ? this.#isOwn(token) : this.#isIssued(token)) return;
    if (authorization !== undefined)
      throw new GcsFakeError(401, "authError", "Invalid Credentials");
    const why = "Anonymous caller does not have storage access.";
    throw new GcsFakeError(401, "required", why);
  }

  #isIssued(token: string): boolean {
    return (this.#expiriesMs.get(token) ?? 0) > this.#nowMs();
  }

  #isOwn(token: string): boolean {
    if (!this.#isSigned(token)) return false;
    const { iss, iat = 0, exp = 0, ...claims } = claimsOf(token);
    const nowSeconds = this.#nowMs() / 1000;
    const isTimely = Math.abs(nowSeconds - iat) <= maxSkewSeconds && exp > nowSeconds;
    return iss === email && isTimely && scope.test(claims.scope ?? "");
  }

  #isSigned(token: string): boolean {
    const [head = "", payload = "", signature = ""] = token.split(".");
    const text = Buffer.from(`${head}.${payload}`);
    return verify("RSA-SHA256", text, this.#publicKey, Buffer.from(signature, "base64url"));
  }
}

function claimsOf(token: string): Claims {
  const [, payload = ""] = token.split(".");
  return JSON.parse(Buffer.from(payload, "base64url").toString()) as Claims;
}

/** The error of a token. */
export function invalidGrant(description: string): GcsFakeError {
  return new GcsFakeError(400, "invalid_grant", description);
}
