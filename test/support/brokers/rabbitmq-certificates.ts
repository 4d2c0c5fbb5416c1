/**
 * Certificates for a broker on loopback and for a client of it, from an authority of a test's own.
 */
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const days = "2";
/** Elliptic curves: such a key is made at once. */
const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];

/** Files in PEM form. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Makes certificates in a directory that the caller owns. */
export class Authority {
  readonly cert: string;
  readonly #directory: string;

  /** The authority that {@link create} made in this directory. */
  constructor(directory: string) {
    this.#directory = directory;
    this.cert = join(directory, "ca.pem");
  }

  static async create(directory: string): Promise<Authority> {
    const authority = new Authority(directory);
    const files = ["-keyout", join(directory, "ca.key"), "-out", authority.cert];
    await openssl("req", "-x509", ...newKey, "-nodes", "-subj", "/CN=test-ca", ...files);
    return authority;
  }

  /**
   * @param names what the holder is called in TLS, such as `IP:127.0.0.1`
   * @param passphrase closes the key; without one it is open
   */
  async issue(commonName: string, names: string, passphrase?: string): Promise<Certificate> {
    const file = (ending: string): string => join(this.#directory, `${commonName}.${ending}`);
    const lock = passphrase === undefined ? ["-nodes"] : ["-passout", `pass:${passphrase}`];
    const request = ["-keyout", file("key"), "-out", file("csr"), "-subj", `/CN=${commonName}`];
    await openssl("req", ...newKey, ...lock, ...request);
    await writeFile(file("ext"), `subjectAltName = ${names}\n`);
    const authority = ["-CA", this.cert, "-CAkey", join(this.#directory, "ca.key")];
    const issued = ["-extfile", file("ext"), "-out", file("pem"), "-days", days];
    await openssl("x509", "-req", "-in", file("csr"), ...authority, "-CAcreateserial", ...issued);
    return { cert: file("pem"), key: file("key") };
  }
}

async function openssl(...args: readonly string[]): Promise<void> {
  await run("/usr/bin/openssl", args);
}
