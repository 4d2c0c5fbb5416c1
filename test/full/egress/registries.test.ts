/**
 * Installers in sandboxes with a list, from the registries that this machine is configured for.
 *
 * @module-tag full
 */
import { execFile } from "node:child_process";
import { realpath } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { type TestContext, expect, test } from "vitest";
import { lookUpByHost } from "../../../worker/egress/resolve.ts";
import { listedSandbox, nodeInside } from "../../support/egress/listed-sandbox.ts";
import { openNetworkPlace } from "../../support/sandboxes/network-place.ts";
import { python } from "../../support/pypi-packages.ts";
import { shared } from "../../support/shared.ts";

const run = promisify(execFile);
const place = shared(() => openNetworkPlace());

/** Milliseconds for the answer of a registry to a question of this process. */
const answerMs = 10_000;

/** The authorities of the machine, which may have some of a mirror's. */
const authorities = "/etc/ssl/certs/ca-certificates.crt";
const variables = {
  HOME: "/tmp",
  PATH: `${dirname(nodeInside)}:/usr/bin:/bin`,
  NODE_EXTRA_CA_CERTS: authorities,
  PIP_CERT: authorities,
};

/** By the name servers of this machine, as a worker does it. */
const resolve = async (name: string, signal: AbortSignal) =>
  (await lookUpByHost(name, signal)).addresses;

/** The value of an installer's setting on this machine. */
async function setting(argv: readonly [string, ...string[]], usual: string): Promise<string> {
  const [program, ...rest] = argv;
  const { stdout } = await run(program, rest).catch(() => ({ stdout: "" }));
  return URL.canParse(stdout.trim()) ? stdout.trim() : usual;
}

/** An entry for the host of a registry, which may be a mirror at a private address. */
function entryFor(url: string) {
  const { hostname, port } = new URL(url);
  return { host: hostname, ports: [port === "" ? 443 : Number(port)], private: true };
}

/** Skips the test where this machine does not reach the registry as a worker would. */
async function requireRegistry({ skip }: TestContext, url: string): Promise<void> {
  const { hostname, protocol } = new URL(url);
  skip(protocol !== "https:", `${url} has no TLS`);
  const signal = AbortSignal.timeout(answerMs);
  const reached = await resolve(hostname, signal)
    .then(() => fetch(url, { signal, method: "HEAD" }))
    .then(({ ok, status }) => (ok ? undefined : String(status)), String);
  skip(reached !== undefined, `${url} is not reached: ${reached}`);
}

const usualIndex = "https://pypi.org/simple";
const packageOfPyPI = "https://files.pythonhosted.org";

async function pip(context: TestContext, hosts: (index: string) => readonly string[]) {
  const index = await setting(
    [python, "-m", "pip", "config", "get", "global.index-url"],
    usualIndex,
  );
  await requireRegistry(context, `${index.replace(/\/$/, "")}/six/`);
  const allow = hosts(index).map(entryFor);
  const { sandbox, run: runInside } = await listedSandbox(await place(context), {
    ...{ allow, resolve, variables },
  });
  const options = `--no-cache-dir --disable-pip-version-check --retries 0 --index-url ${index}`;
  const install = `${python} -m pip install ${options} --target /tmp/installed six 2>&1`;
  const use = `PYTHONPATH=/tmp/installed ${python} -c 'import six; print(six.__file__)'`;
  const { stdout } = await runInside(["/bin/sh", "-c", `${install} && ${use}`]);
  return { usage: sandbox.networkUsage, stdout };
}

test("pip installs a package by the names of its index and of its files", async (context) => {
  const { usage, stdout } = await pip(context, (index) => [index, packageOfPyPI]);
  expect(stdout.trim().split("\n").at(-1)).toBe("/tmp/installed/six.py");
  expect(usage?.refusals).toEqual([]);
  expect(usage?.connections).toBeGreaterThan(0);
});

test("pip does not get a file from a host that is not in the list, which is named", async (context) => {
  const { usage, stdout } = await pip(context, (index) => [index]);
  context.skip(stdout.includes("/tmp/installed/six.py"), "the index has the files itself");
  const { hostname: host } = new URL(packageOfPyPI);
  expect(stdout).not.toContain("Successfully installed");
  expect(usage?.refusals).toContainEqual({ host, port: 443, reason: "no-rule" });
});

test("npm installs a package with those that it needs by the one name of its registry", async (context) => {
  const npm = await realpath("/usr/bin/npm").catch(() => undefined);
  if (npm?.startsWith("/usr/") !== true) return context.skip("/usr/bin/npm is not there");
  const usual = "https://registry.npmjs.org/";
  const registry = await setting(["npm", "config", "get", "registry"], usual);
  await requireRegistry(context, new URL("is-odd", registry).href);
  const { sandbox, run: runInside } = await listedSandbox(await place(context), {
    ...{ allow: [entryFor(registry)], resolve, variables },
  });
  const options = `--registry ${registry} --no-audit --no-fund --no-update-notifier`;
  const install = `cd /tmp && node ${npm} install ${options} is-odd 2>&1`;
  const use = `node -e 'console.log(require("is-odd")(3), require("is-number")(3))'`;
  const { stdout } = await runInside(["/bin/sh", "-c", `${install} && ${use}`]);
  expect(stdout.trim().split("\n").at(-1)).toBe("true true");
  expect(sandbox.networkUsage?.refusals).toEqual([]);
  expect(sandbox.networkUsage?.connections).toBeGreaterThan(0);
});
