/**
 * Certificates by which the worker ends TLS of sandboxes. Keys stay in memory.
 */
import { KeyObject, X509Certificate, type webcrypto } from "node:crypto";
import type * as x509Library from "@peculiar/x509";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../support/clock.ts";

const hourMs = 60 * 60_000;

/** The authority's certificate ends with the worker, which alone has its key. */
const authorityMs = 10 * 365 * 24 * hourMs;

/** Validity of a host's certificate; a new one is issued after half of it. */
export const leafMs = 24 * hourMs;

/** Certificates begin in the past: their times have whole seconds. */
const leewayMs = 60_000;

/** Certificates that are kept; names below a wildcard have one each. */
const maxLeaves = 256;

/** Their names differ: a certificate whose issuer has its own name is taken for self-signed. */
const issuer = "CN=Secure Tool Runtime Authority";
const subject = "CN=Secure Tool Runtime Edge";
const keyAlgorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const serverAuthentication = "1.3.6.1.5.5.7.3.1";
const nameConstraintsOid = "2.5.29.30";

/** Certificate and key of a host, in PEM form. */
export interface Leaf {
  readonly cert: string;
  readonly key: string;
}

/** An authority that clients accept for its names, and the names below them, only. */
export class CertificateAuthority {
  /** In PEM form. */
  readonly certificate: string;
  readonly #x509: X509Library;
  readonly #keys: webcrypto.CryptoKeyPair;
  readonly #clock: Pick<Clock, "nowMs">;
  readonly #leaves = new LRUCache<string, { readonly renewMs: number; leaf: Promise<Leaf> }>({
    max: maxLeaves,
  });

  private constructor(
    certificate: string,
    x509: X509Library,
    keys: webcrypto.CryptoKeyPair,
    clock: Pick<Clock, "nowMs">,
  ) {
    this.certificate = certificate;
    this.#x509 = x509;
    this.#keys = keys;
    this.#clock = clock;
  }

  /** Makes keys and a certificate for these names, of which there is at least one. */
  static async create(
    names: readonly string[],
    clock: Pick<Clock, "nowMs">,
  ): Promise<CertificateAuthority> {
    const x509 = await loadLibrary();
    const keys = await crypto.subtle.generateKey(keyAlgorithm, false, ["sign", "verify"]);
    const nowMs = clock.nowMs();
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      name: issuer,
      keys,
      signingAlgorithm: keyAlgorithm,
      notBefore: new Date(nowMs - leewayMs),
      notAfter: new Date(nowMs + authorityMs),
      extensions: [
        new x509.BasicConstraintsExtension(true, 0, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
        new x509.ExtendedKeyUsageExtension([serverAuthentication]),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
        new x509.Extension(nameConstraintsOid, true, nameConstraints(names)),
      ],
    });
    return new CertificateAuthority(pemOf(certificate.rawData), x509, keys, clock);
  }

  /** A certificate for this name, valid for at least half of {@link leafMs}. */
  leafFor(name: string): Promise<Leaf> {
    const nowMs = this.#clock.nowMs();
    const known = this.#leaves.get(name);
    if (known !== undefined && nowMs < known.renewMs) return known.leaf;
    const leaf = this.#issue(name, nowMs);
    this.#leaves.set(name, { renewMs: nowMs + leafMs / 2, leaf });
    leaf.catch(() => this.#leaves.delete(name));
    return leaf;
  }

  async #issue(name: string, nowMs: number): Promise<Leaf> {
    const x509 = this.#x509;
    const { privateKey, publicKey } = await crypto.subtle.generateKey(keyAlgorithm, true, [
      "sign",
      "verify",
    ]);
    const certificate = await x509.X509CertificateGenerator.create({
      subject,
      issuer,
      publicKey,
      signingKey: this.#keys.privateKey,
      signingAlgorithm: keyAlgorithm,
      notBefore: new Date(nowMs - leewayMs),
      notAfter: new Date(nowMs + leafMs),
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([serverAuthentication]),
        new x509.SubjectAlternativeNameExtension([{ type: "dns", value: name }]),
        await x509.AuthorityKeyIdentifierExtension.create(this.#keys.publicKey),
      ],
    });
    const key = KeyObject.from(privateKey).export({ type: "pkcs8", format: "pem" });
    return { cert: pemOf(certificate.rawData), key: key.toString() };
  }
}

type X509Library = typeof x509Library;

/** Loaded by the first authority: it takes longer than most of a worker's start. */
async function loadLibrary(): Promise<X509Library> {
  await import("reflect-metadata");
  return import("@peculiar/x509");
}

function pemOf(der: ArrayBuffer): string {
  return new X509Certificate(new Uint8Array(der)).toString();
}

/** RFC 5280, section 4.2.1.10: the names and what is below them, and no address at all. */
function nameConstraints(names: readonly string[]): Uint8Array<ArrayBuffer> {
  const subtree = (base: Uint8Array): Uint8Array => element(tags.sequence, base);
  const permitted = names.map((name) => subtree(element(tags.dnsName, Buffer.from(name, "ascii"))));
  // An address and its mask, of IPv4 and of IPv6.
  const excluded = [8, 32].map((length) =>
    subtree(element(tags.ipAddress, new Uint8Array(length))),
  );
  return element(
    tags.sequence,
    element(tags.permitted, ...permitted),
    element(tags.excluded, ...excluded),
  );
}

/** Tags of DER. */
const tags = { sequence: 0x30, permitted: 0xa0, excluded: 0xa1, dnsName: 0x82, ipAddress: 0x87 };

/** An element of DER: tag, length, content. */
function element(tag: number, ...contents: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const content = Buffer.concat(contents);
  const { length } = content;
  const digits = length.toString(16);
  const lengthBytes = Buffer.from(digits.padStart(digits.length + (digits.length % 2), "0"), "hex");
  const header = length < 0x80 ? [tag, length] : [tag, 0x80 | lengthBytes.length, ...lengthBytes];
  return Uint8Array.from([...header, ...content]);
}
