/**
 * Runs a Python program in a sandbox with a list, whose names lead to a greeting server here.
 * Prints who this process is, what the program printed, and what the network refused. A process of
 * its own, so that any user can run it: `node reaching-sandbox.ts PROGRAM`, in which `{port}` is
 * the port of the server.
 */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { Egress } from "../../../worker/egress/fabric.ts";
import { WorkerEndpoints } from "../../../worker/egress/resolve.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { openNetworkPlace } from "../sandboxes/network-place.ts";
import { runListed } from "./listed-program.ts";

const [program = ""] = process.argv.slice(2);

const server = createServer((socket) => void socket.end("greeting"));
server.listen(0, "127.0.0.1");
await once(server, "listening");
server.unref();
const { port } = server.address() as AddressInfo;

await using place = await openNetworkPlace();
const egress = await Egress.open({
  ...{ scratchDir: place.backend.scratchDir, clock: systemClock },
  resolve: () => Promise.resolve(["127.0.0.1"]),
  endpoints: new WorkerEndpoints([], systemClock),
});
const allow = [{ host: "api.example.com", ports: [port], private: true }];
const text = program.replaceAll("{port}", String(port));
const ran = await runListed(place, egress, allow, text);
const status = await readFile("/proc/self/status", "utf8");
const capabilities = /^CapBnd:\s*(\w+)$/m.exec(status)?.[1];
process.stdout.write(JSON.stringify({ uid: process.getuid?.(), capabilities, ...ran }));
