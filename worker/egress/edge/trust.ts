/**
 * What sandboxes with opened hosts trust: the system's authorities, and one of the worker for these
 * hosts.
 */
import { lstat, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { LRUCache } from "lru-cache";
import type { NetworkPolicy } from "../../protocol/network-rules.ts";
import type { Clock } from "../../support/clock.ts";
import { CertificateAuthority } from "./authority.ts";

/** Authorities that are kept: more than a worker has tools. */
const maxAuthorities = 1_024;

/** Where systems have the certificates of all authorities in one file. */
const systemBundles = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/** Inside: all that is trusted, and the worker's authority alone. */
const bundleInside = "/sandbox/ca-certificates.crt";
const authorityInside = "/sandbox/ca-authority.crt";

/** OpenSSL, Python's `requests`, and Node, which has the other authorities itself. */
const environment = new Map([
  ["SSL_CERT_FILE", bundleInside],
  ["REQUESTS_CA_BUNDLE", bundleInside],
  ["NODE_EXTRA_CA_CERTS", authorityInside],
]);

/** An authority, with the files and variables by which sandboxes trust it. */
export interface TrustedAuthority {
  readonly authority: CertificateAuthority;
  /** Where files are inside, and on the host. */
  readonly files: ReadonlyMap<string, string>;
  readonly environment: ReadonlyMap<string, string>;
}

/** Makes an authority for each set of opened hosts. */
export class Trust {
  readonly #directory: string;
  readonly #clock: Pick<Clock, "nowMs">;
  readonly #authorities = new LRUCache<string, Promise<TrustedAuthority>>({
    max: maxAuthorities,
    dispose: (_authority, hosts) => void this.#remove(hosts),
  });
  readonly #directories = new Map<string, string>();
  #lastId = 0;

  /** @param directory from which sandboxes can mount; the caller removes it */
  constructor(directory: string, clock: Pick<Clock, "nowMs">) {
    this.#directory = directory;
    this.#clock = clock;
  }

  /** Undefined for a network that opens no connection. Rejects where a file cannot be written. */
  async of(policy: NetworkPolicy): Promise<TrustedAuthority | undefined> {
    const names = openedNames(policy);
    if (names.length === 0) return undefined;
    const hosts = names.join(" ");
    const known = this.#authorities.get(hosts);
    if (known !== undefined) return known;
    const directory = join(this.#directory, String(++this.#lastId));
    this.#directories.set(hosts, directory);
    const made = make(names, directory, this.#clock);
    this.#authorities.set(hosts, made);
    made.catch(() => this.#authorities.delete(hosts));
    return made;
  }

  async #remove(hosts: string): Promise<void> {
    const directory = this.#directories.get(hosts);
    this.#directories.delete(hosts);
    // The worker's directory is removed later, with leftovers.
    if (directory !== undefined)
      await rm(directory, { recursive: true, force: true }).catch(() => undefined);
  }
}

function openedNames({ lists }: NetworkPolicy): readonly string[] {
  const opened = lists.flat().filter(({ requests }) => requests !== undefined);
  const names = opened.flatMap(({ host }) => ("name" in host ? [host.name] : []));
  return [...new Set(names)].toSorted();
}

async function make(
  names: readonly string[],
  directory: string,
  clock: Pick<Clock, "nowMs">,
): Promise<TrustedAuthority> {
  const authority = await CertificateAuthority.create(names, clock);
  const system = await systemBundle();
  const [bundle, alone] = [join(directory, "bundle.pem"), join(directory, "authority.pem")];
  await mkdir(directory, { recursive: true, mode: 0o755 });
  await writeFile(bundle, `${system.text}\n${authority.certificate}`, { mode: 0o644 });
  await writeFile(alone, authority.certificate, { mode: 0o644 });
  const files = new Map([
    [bundleInside, bundle],
    [authorityInside, alone],
    ...system.paths.map((path) => [path, bundle] as const),
  ]);
  return { authority, files, environment };
}

/** The system's certificates, and the files that have them; Node's where there are none. */
async function systemBundle(): Promise<{ readonly text: string; readonly paths: string[] }> {
  const found = systemBundles.map(async (path) => {
    // A link leads to a place that sandboxes may not have.
    const stats = await lstat(path).catch(() => undefined);
    return stats?.isFile() === true ? [path] : [];
  });
  const paths = (await Promise.all(found)).flat();
  const [path] = paths;
  const text = path === undefined ? rootCertificates.join("\n") : await readFile(path, "utf8");
  return { text, paths };
}
