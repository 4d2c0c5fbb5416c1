/**
 * Runs a command where `api.github.com` is a server of this process: those of docs/network.md work
 * without the internet, and without a real token. It needs its own namespaces:
 *
 *     unshare --net --mount node test/support/egress/github.ts sh -c 'harness tool run …'
 */
import { execFileSync, spawn } from "node:child_process";
import { appendFile, chmod, copyFile, cp, readFile, writeFile } from "node:fs/promises";
import { once } from "node:events";
import { createServer } from "node:https";
import { join } from "node:path";
import { createPassableDirectory } from "../../../harness/temporary.ts";
import { Authority } from "../brokers/rabbitmq-certificates.ts";

const host = "api.github.com";

/** A public address, to which every route of the namespace leads. */
const address = "140.82.112.5";

/** Gets a higher limit. */
const token = "github-token-of-the-test";

/** Where systems have the authorities that programs trust. */
const certificates = "/etc/ssl/certs";

const [program = "true", ...args] = process.argv.slice(2);
await using home = await createPassableDirectory("str-github-");

execFileSync("ip", ["link", "set", "lo", "up"]);
execFileSync("ip", ["route", "add", "local", "0.0.0.0/0", "dev", "lo"]);
await writeFile(join(home.path, "hosts"), `127.0.0.1 localhost\n${address} ${host}\n`);
execFileSync("mount", ["--bind", join(home.path, "hosts"), "/etc/hosts"]);

const authority = await Authority.create(home.path);
const { cert, key } = await authority.issue("server", `DNS:${host}`);
await trust(authority.cert);

const server = createServer(
  { cert: await readFile(cert), key: await readFile(key) },
  ({ headers: { authorization } }, response) => {
    const isKnown = authorization === `Bearer ${token}`;
    if (authorization !== undefined && !isKnown) response.statusCode = 401;
    response.end(JSON.stringify({ rate: { limit: isKnown ? 5_000 : 60 } }));
  },
);
server.listen(443, "0.0.0.0");
await once(server, "listening");
const child = spawn(program, args, {
  stdio: "inherit",
  env: { ...process.env, GITHUB_TOKEN: token, NODE_EXTRA_CA_CERTS: authority.cert },
});
const [exitCode] = (await once(child, "exit")) as [number | null];
process.exitCode = exitCode ?? 1;
server.close();

/** Programs look into the directory, by a hash of the subject, or into its one file. */
async function trust(authorityFile: string): Promise<void> {
  const copy = join(home.path, "certs");
  await cp(certificates, copy, { recursive: true, verbatimSymlinks: true });
  const options = ["x509", "-noout", "-subject_hash", "-in", authorityFile];
  const hash = execFileSync("openssl", options, { encoding: "utf8" }).trim();
  await copyFile(authorityFile, join(copy, `${hash}.0`));
  await chmod(copy, 0o755);
  await appendFile(join(copy, "ca-certificates.crt"), await readFile(authorityFile));
  execFileSync("mount", ["--bind", copy, certificates]);
}
