/**
 * Runs a Python program in a sandbox with a list, in a network namespace where every address is
 * answered by a server here, with the address. Names have the records of a name server here, which
 * change as soon as they were asked for. `{later}` in the program is a message to the server, by
 * which more time passes than addresses are kept. Prints what the program printed, what the network
 * refused, and how often each name was asked for. A process of its own, since a test cannot leave
 * its namespace.
 */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import type { Answer } from "dns-packet";
import { Egress } from "../../../worker/egress/fabric.ts";
import { keptFor, minKeptSeconds } from "../../../worker/egress/resolve-cache.ts";
import { WorkerEndpoints, lookUpByHost } from "../../../worker/egress/resolve.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { openNetworkPlace } from "../sandboxes/network-place.ts";
import { runListed } from "./listed-program.ts";
import { type Zone, openNameServer } from "./name-server.ts";

const [program = "", list = "[]", records = "{}"] = process.argv.slice(2);
const allow = JSON.parse(list) as readonly unknown[];
/** Its address at first, and from then on. */
const names = JSON.parse(records) as Readonly<Record<string, readonly [string, string]>>;
const later = "later";

execFileSync("ip", ["link", "set", "lo", "up"]);
execFileSync("ip", ["route", "add", "local", "0.0.0.0/0", "dev", "lo"]);

const record = (name: string, data: string): readonly Answer[] => [
  { type: "A", name, ttl: 1, data },
];
const zone: Record<string, Zone[string]> = Object.fromEntries(
  Object.entries(names).map(([name, [first]]) => [`A ${name}`, record(name, first)]),
);
using nameServer = await openNameServer(zone);

let passedMs = 0;
const clock = { monotonicMs: () => systemClock.monotonicMs() + passedMs };
const server = createServer((socket) => {
  socket.on("error", () => undefined);
  socket.once("data", (chunk) => {
    if (chunk.toString() === later) passedMs += minKeptSeconds * 1_000;
    socket.end(socket.localAddress ?? "");
  });
});
server.listen(80, "0.0.0.0");
await once(server, "listening");
server.unref();

const resolve = keptFor(async (name, signal) => {
  const found = await lookUpByHost(name, signal, [nameServer.place]);
  const second = names[name]?.[1];
  if (second !== undefined) zone[`A ${name}`] = record(name, second);
  return found;
}, clock);
await using place = await openNetworkPlace();
const egress = await Egress.open({
  ...{ scratchDir: place.backend.scratchDir, clock: systemClock, resolve },
  endpoints: new WorkerEndpoints([], systemClock),
});
const text = program.replaceAll("{later}", later);
const ran = await runListed(place, egress, allow, text);
const asked = nameServer.questions.filter((question) => question.startsWith("A "));
process.stdout.write(JSON.stringify({ ...ran, asked }));
