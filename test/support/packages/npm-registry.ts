/**
 * A registry of npm for tests, with packages made by hand.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tarball } from "./archives.ts";

/** A package of the registry. */
export interface NpmPackage {
  readonly name: string;
  readonly version: string;
  readonly files?: Readonly<Record<string, string>>;
  /** Members of package.json. */
  readonly manifest?: Readonly<Record<string, unknown>>;
}

/** A running registry. */
export interface NpmRegistry extends AsyncDisposable {
  readonly url: string;
  /** Paths and authorizations of the requests until now. */
  readonly requests: readonly { readonly path: string; readonly authorization?: string }[];
  /** The `integrity` of a package's archive. */
  integrityOf(name: string, version: string): string;
}

/** Starts a registry on a free port; the caller owns it. */
export async function startNpmRegistry(packages: readonly NpmPackage[]): Promise<NpmRegistry> {
  const archives = new Map(packages.map((one) => [fileOf(one), { ...one, bytes: packed(one) }]));
  const requests: { path: string; authorization?: string }[] = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? "");
    const { authorization } = request.headers;
    requests.push({ path, ...(authorization !== undefined && { authorization }) });
    const archive = archives.get(path);
    if (archive !== undefined) return void response.end(archive.bytes);
    const versions = packages.filter(({ name }) => path === `/${name}`);
    if (versions.length === 0) return void response.writeHead(404).end("{}");
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(packument(versions)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  function packument(versions: readonly NpmPackage[]): object {
    const [{ name = "" } = {}] = versions;
    return {
      name,
      "dist-tags": { latest: versions.at(-1)?.version },
      versions: Object.fromEntries(
        versions.map((one) => [
          one.version,
          {
            ...manifestOf(one),
            dist: { tarball: url + fileOf(one), integrity: integrityOf(one.name, one.version) },
          },
        ]),
      ),
    };
  }

  function integrityOf(name: string, version: string): string {
    const { bytes } = archives.get(fileOf({ name, version }))!;
    return `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  }

  return {
    url,
    requests,
    integrityOf,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function fileOf({ name, version }: Pick<NpmPackage, "name" | "version">): string {
  return `/${name}/-/${name.split("/").at(-1)}-${version}.tgz`;
}

function manifestOf({ name, version, manifest }: NpmPackage): object {
  return { name, version, main: "index.js", ...manifest };
}

function packed(one: NpmPackage): Buffer {
  const source = `module.exports = ${JSON.stringify(one.version)};\n`;
  const manifest = JSON.stringify(manifestOf(one));
  return tarball("package", { "index.js": source, ...one.files, "package.json": manifest });
}
