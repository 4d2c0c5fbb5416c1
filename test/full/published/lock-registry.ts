/**
 * A registry that knows what package-lock.json names, and nothing else. `npm ci` has the packages
 * in npm's cache, but not what an `npm install` asks the registry about them: answered here, it
 * needs no network.
 */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { root } from "../../package/processes.ts";

/** A package as package-lock.json has it. */
interface Locked {
  readonly version: string;
  readonly integrity: string;
}

/** A registry on a free port of this machine. Its owner disposes it. */
export interface LockRegistry extends AsyncDisposable {
  /** What has npm ask it, and take packages from where npm's registry has them. */
  readonly npmOptions: readonly string[];
}

/** Starts one. */
export async function startLockRegistry(): Promise<LockRegistry> {
  const packuments = readPackuments();
  const server = createServer((request, response) => {
    const packument = packuments.get(decodeURIComponent(request.url!.slice(1)));
    response.writeHead(packument === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(packument ?? { error: "not in package-lock.json" }));
  });
  const listening = Promise.withResolvers<void>();
  server.once("error", listening.reject).listen(0, "127.0.0.1", listening.resolve);
  await listening.promise;
  const { port } = server.address() as AddressInfo;
  return {
    npmOptions: [`--registry=http://127.0.0.1:${port}/`, "--replace-registry-host=never"],
    [Symbol.asyncDispose]: async () => {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}

/** By name of the package: all its versions in the lock. */
function readPackuments(): ReadonlyMap<string, object> {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, Locked>>;
  };
  const packuments = new Map<string, { name: string; versions: Record<string, object> }>();
  for (const [path, { integrity, ...locked }] of Object.entries(lock.packages)) {
    if (path === "") continue;
    const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    const packument = packuments.get(name) ?? { name, versions: {} };
    packuments.set(name, packument);
    const dist = { tarball: tarballOf(name, locked.version), integrity };
    packument.versions[locked.version] = { name, ...locked, dist };
  }
  for (const packument of packuments.values()) {
    Object.assign(packument, { "dist-tags": { latest: Object.keys(packument.versions).at(-1) } });
  }
  return packuments;
}

/**
 * Where npm's registry has a package: the lock does not say, and npm's cache knows it by
 * `integrity`.
 */
function tarballOf(name: string, version: string): string {
  const file = `${name.slice(name.indexOf("/") + 1)}-${version}.tgz`;
  return `https://registry.npmjs.org/${name}/-/${file}`;
}
