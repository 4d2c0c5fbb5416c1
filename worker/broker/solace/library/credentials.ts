/**
 * The worker's credentials, and the certificates that it trusts.
 */
import { readFile, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { type SecureContextOptions, createSecureContext } from "node:tls";
import solace from "solclientjs";
import { BrokerError } from "../../broker.ts";
import { isEncrypted } from "../address.ts";
import type { SolaceConfig } from "../config.ts";
import { textOf } from "./library.ts";

const maxTrustedFiles = 1_000;

/** User and password of a new broker, by its documentation. */
const defaultUser = "admin";

export type Identity = Pick<
  SolaceConfig,
  "username" | "password" | "oauthToken" | "oauthTokenFile" | "tls"
>;

export function nameOf({ username, oauthToken, oauthTokenFile, tls }: Identity): string {
  if (oauthTokenFile !== undefined) return `the OAuth token in ${oauthTokenFile}`;
  if (oauthToken !== undefined) return "the OAuth token";
  if (tls.clientCertPath !== undefined) return `the certificate ${tls.clientCertPath}`;
  return `the user ${username ?? defaultUser}`;
}

/** Checks the files: over an unusable one the library leaves a socket whose failure is fatal. */
export async function loginProperties(
  identity: Identity,
  urls: readonly string[],
): Promise<Partial<solace.SessionProperties>> {
  return { ...(await authentication(identity)), ...(await trust(identity, urls)) };
}

async function authentication(identity: Identity): Promise<Partial<solace.SessionProperties>> {
  const { username, password, oauthToken, oauthTokenFile, tls } = identity;
  const user = username === undefined ? {} : { userName: octets(username) };
  const accessToken = oauthTokenFile === undefined ? oauthToken : await readToken(oauthTokenFile);
  if (accessToken !== undefined) {
    const authenticationScheme = solace.AuthenticationScheme.OAUTH2;
    return { ...user, authenticationScheme, accessToken };
  }
  const { clientCertPath, clientKeyPath, clientKeyPassphrase: passphrase } = tls;
  if (clientCertPath !== undefined && clientKeyPath !== undefined) {
    const [cert, key] = [await read(clientCertPath), await read(clientKeyPath)];
    checkKeyPair({ cert, key, ...(passphrase !== undefined && { passphrase }) }, clientKeyPath);
    return {
      ...user,
      authenticationScheme: solace.AuthenticationScheme.CLIENT_CERTIFICATE,
      sslCertificate: clientCertPath,
      sslPrivateKey: clientKeyPath,
      ...(passphrase !== undefined && { sslPrivateKeyPassword: passphrase }),
    };
  }
  return { userName: octets(username ?? defaultUser), password: octets(password ?? defaultUser) };
}

/** The bytes of a text as characters: the library sends the low byte of each character. */
function octets(text: string): string {
  return Buffer.from(text).toString("latin1");
}

async function trust(
  { tls: { trustStorePath } }: Identity,
  urls: readonly string[],
): Promise<Partial<solace.SessionProperties>> {
  if (trustStorePath === undefined || !urls.some((url) => isEncrypted([url]))) return {};
  const files = await filesIn(trustStorePath);
  for (const file of files) {
    const pem = await read(file);
    if (!pem.includes("BEGIN CERTIFICATE"))
      throw unusable(file, "it has no certificate in PEM form");
  }
  return { sslTrustStores: files };
}

/** The library takes the files of a directory one by one. */
async function filesIn(path: string): Promise<string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const names = (await readdir(path)).filter((name) => /\.(?:pem|crt|cer)$/i.test(name));
    if (names.length === 0 || names.length > maxTrustedFiles) {
      throw new Error(`it has ${names.length} files *.pem, *.crt or *.cer`);
    }
    return names.map((name) => join(path, name)).toSorted();
  } catch (error) {
    throw unusable(path, error);
  }
}

async function read(file: string, purpose?: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    throw unusable(file, error, purpose);
  }
}

async function readToken(file: string): Promise<string> {
  const purpose = "as OAuth token";
  const token = (await read(file, purpose)).toString().trim();
  if (token === "") throw unusable(file, "it is empty", purpose);
  return token;
}

function checkKeyPair(pair: SecureContextOptions, keyFile: string): void {
  try {
    createSecureContext(pair);
  } catch (error) {
    throw unusable(keyFile, error);
  }
}

function unusable(file: string, cause: unknown, purpose = "for TLS"): BrokerError {
  const reason = typeof cause === "string" ? cause : textOf(cause);
  return new BrokerError(`Cannot use ${file} ${purpose}: ${reason}`, { cause, transient: false });
}
