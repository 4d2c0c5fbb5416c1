/**
 * Clients in sandboxes of a server outside: through the fabric, and by the host's own network.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Egress } from "../../worker/egress/fabric.ts";
import { WorkerEndpoints } from "../../worker/egress/resolve.ts";
import { type Network, networkField, toNetwork } from "../../worker/protocol/network-rules.ts";
import type { BubblewrapBackend } from "../../worker/sandbox/bubblewrap/backend.ts";
import type { SandboxRequest } from "../../worker/sandbox/sandbox.ts";
import { systemClock } from "../../worker/support/clock.ts";
import { openSandboxes, standardProfile } from "../bare.ts";

const serverAddress = "127.0.0.1";
/** What the list calls the server. */
const serverName = "server.example.com";

/** Seconds of processor time of a client: enough for every round. */
const cpuSeconds = 3_600;

/** `trips` of one byte and back on an open connection, or bytes one way. */
export interface Order {
  readonly work: "trips" | "upload" | "download";
  readonly amount: number;
  /** As fast as it goes unless given. */
  readonly bytesPerSecond?: number;
}

/** One connection of a program in a sandbox. Carries out one order at a time. */
export interface Client {
  /** Milliseconds that it took. */
  run(order: Order): Promise<number>;
}

/** Both ways to the same server. Their owner disposes them. */
export interface Clients extends AsyncDisposable {
  readonly through: Client;
  readonly direct: Client;
}

const letters = { trips: "T", upload: "U", download: "D" } as const;

/** Starts the server and both clients; the fabric is in this process. */
export async function openClients(base: string): Promise<Clients> {
  await using opened = new AsyncDisposableStack();
  const port = await startServer(opened);
  const backend = opened.use(await openSandboxes(base, false));
  const allow = [{ host: serverName, ports: [port], private: true }];
  const listed = toNetwork(networkField.parse({ allow }));
  const through = await openClient(backend, listed, [serverName, String(port)], opened);
  const direct = await openClient(backend, "host", [serverAddress, String(port)], opened);
  const owned = opened.move();
  return { through, direct, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function startServer(owner: AsyncDisposableStack): Promise<number> {
  const program = fileURLToPath(new URL("peer.py", import.meta.url));
  const child = spawn("/usr/bin/python3", ["-I", program], { stdio: ["pipe", "pipe", "inherit"] });
  owner.defer(async () => {
    const closed = once(child, "close");
    child.stdin.end();
    await closed;
  });
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as string[];
  return Number(line);
}

async function openClient(
  backend: BubblewrapBackend,
  network: Network,
  server: readonly string[],
  owner: AsyncDisposableStack,
): Promise<Client> {
  const resolve = (): Promise<readonly string[]> => Promise.resolve([serverAddress]);
  const egress = await Egress.open({
    ...{ scratchDir: backend.scratchDir, resolve, clock: systemClock },
    endpoints: new WorkerEndpoints([], systemClock, resolve),
  });
  const standard = standardProfile();
  const profile = { ...standard, network, limits: { ...standard.limits, cpuSeconds } };
  const request: SandboxRequest = {
    ...{ profile, memoryBound: "address-space" as const, mounts: [], devices: [] },
    network: await egress.networkOf(profile),
    environment: new Map([["PATH", "/usr/bin"]]),
  };
  const sandbox = owner.use(await backend.acquire(request, AbortSignal.any([])));
  const program = readFileSync(new URL("client.py", import.meta.url), "utf8");
  const argv = ["/usr/bin/python3", "-I", "-c", program, ...server];
  const { stdin, stdout, exited } = await sandbox.start({ argv, hasStdin: true });
  const failed = exited.then(({ stderr }) => {
    throw new Error(`a client ended: ${stderr.text}`);
  });
  // After the last order it is to end.
  failed.catch(() => undefined);
  const answers = createInterface({ input: stdout });
  return {
    async run({ work, amount, bytesPerSecond = 0 }) {
      const answered = once(answers, "line");
      stdin?.write(`${letters[work]} ${amount} ${bytesPerSecond}\n`);
      const [ms] = (await Promise.race([answered, failed])) as string[];
      return Number(ms);
    },
  };
}
