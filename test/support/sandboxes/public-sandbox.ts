/**
 * Runs a Python program in a sandbox whose network is `public`, in a network namespace where some
 * public and private addresses lead to servers here. Prints what the program printed, and what the
 * network refused. A process of its own, since a test cannot leave its namespace.
 */
import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { once } from "node:events";
import { type Server, createServer } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { Egress } from "../../../worker/egress/fabric.ts";
import { WorkerEndpoints } from "../../../worker/egress/resolve.ts";
import { publicNetwork } from "../../../worker/protocol/network-rules.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { Authority } from "../brokers/rabbitmq-certificates.ts";
import { runInNetwork } from "../egress/listed-program.ts";
import { openNetworkPlace } from "./network-place.ts";

const [program = "", addresses = "{}"] = process.argv.slice(2);
const hosts = JSON.parse(addresses) as Readonly<Record<string, readonly string[]>>;

/** Leads every address here, without giving this host any: those would be its own. */
function leadHere(): void {
  execFileSync("ip", ["link", "set", "lo", "up"]);
  execFileSync("ip", ["route", "add", "local", "0.0.0.0/0", "dev", "lo"]);
  execFileSync("ip", ["address", "add", "9.9.9.9/32", "dev", "lo"]);
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, "0.0.0.0");
  await once(server, "listening");
  server.unref();
}

leadHere();
const resolve = (name: string): Promise<readonly string[]> =>
  hosts[name] === undefined ? Promise.reject(new Error("ENOTFOUND")) : Promise.resolve(hosts[name]);
await using place = await openNetworkPlace();
const { backend, base } = place;
const authority = await Authority.create(base);
const { cert, key } = await authority.issue("server", "DNS:api.example.com");
const files = { cert: await readFile(cert), key: await readFile(key) };
await listen(
  createTlsServer(files, (socket) => socket.end("secret")),
  443,
);
for (const port of [80, 25])
  await listen(
    createServer((socket) => {
      socket.on("error", () => undefined);
      socket.on("data", (chunk) => socket.end(`${chunk.toString()} yourself`));
    }),
    port,
  );
const { scratchDir } = backend;
const endpoints = new WorkerEndpoints([{ host: "broker", port: 80 }], systemClock, resolve);
const egress = await Egress.open({ scratchDir, resolve, endpoints, clock: systemClock });
const standard = builtInProfiles.get("standard");
if (standard === undefined) throw new Error("there is no profile standard");
const profile = { ...standard, network: publicNetwork };
process.stdout.write(JSON.stringify(await runInNetwork(place, egress, profile, program)));
