/**
 * What a thousand sandboxes with a list leave in the process of the worker, and on its host.
 *
 * @module-tag full
 */
import { readdir, readlink } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname } from "node:path";
import { type TestContext, expect, test, vi } from "vitest";
import { Egress } from "../../../worker/egress/fabric.ts";
import { WorkerEndpoints } from "../../../worker/egress/resolve.ts";
import { networkField, toNetwork } from "../../../worker/protocol/network-rules.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { knownChildrenOf } from "../../../worker/sandbox/proc/processes.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { listen } from "../../integration/egress/proxy-server.ts";
import { patience } from "../../support/patience.ts";
import { openNetworkPlace } from "../../support/sandboxes/network-place.ts";

/** Sandboxes that open what is opened once, and those that are counted. */
const [firstOnes, counted] = [20, 1_000];

/** How many of each kind this process holds: open descriptors, timers, sockets, processes. */
async function heldHere(): Promise<ReadonlyMap<string, number>> {
  const descriptors = (await readdir("/proc/self/fd")).length;
  const held = new Map([["descriptor", descriptors]]);
  for (const kind of process.getActiveResourcesInfo()) held.set(kind, (held.get(kind) ?? 0) + 1);
  return held;
}

/** The kinds of which there are more than before. */
function grown(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>) {
  return [...after].filter(([kind, count]) => count > (before.get(kind) ?? 0));
}

/** Once the sockets of the last sandbox are closed. */
const settled = () =>
  vi.waitFor(async () => {
    const held = await heldHere();
    expect([...held.keys()]).not.toContain("CloseReq");
    expect([...held.keys()]).not.toContain("TCPSocketWrap");
    return held;
  }, patience);

/** Processes that this one started, and theirs. */
function descendantsOf(pid: number): readonly number[] {
  return knownChildrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
}

/**
 * Network namespaces in which a process of this one is. Those of others may have the same numbers:
 * the kernel gives them again.
 */
async function namespacesInUse(): Promise<ReadonlySet<string>> {
  const links = descendantsOf(process.pid).map((pid) => {
    return readlink(`/proc/${pid}/ns/net`).catch(() => "");
  });
  return new Set(await Promise.all(links));
}

/** Asks for a name, gets an answer over a connection, and tells its namespace. */
const program = (port: number): string => `
exec 3<>/dev/tcp/api.example.com/${port}
cat <&3
readlink /proc/self/ns/net`;

/** Runs one sandbox after the other; the namespaces that they had. */
async function openSandboxes(context: TestContext) {
  const place = await openNetworkPlace();
  context.onTestFinished(() => place[Symbol.asyncDispose]());
  const { backend } = place;
  const port = await listen(createServer((socket) => void socket.end("greeting\n")));
  const resolve = () => Promise.resolve(["127.0.0.1"]);
  const egress = await Egress.open({
    ...{ scratchDir: backend.scratchDir, resolve, clock: systemClock },
    endpoints: new WorkerEndpoints([], systemClock),
  });
  const allow = [{ host: "api.example.com", ports: [port], private: true }];
  const network = toNetwork(networkField.parse({ allow }));
  const profile = { ...builtInProfiles.get("standard")!, network };
  const argv = ["/bin/bash", "-c", program(port)];
  return async (count: number): Promise<readonly string[]> => {
    const namespaces: string[] = [];
    for (let index = 0; index < count; index++) {
      await using sandbox = await backend.acquire(
        {
          ...{ profile, memoryBound: "address-space", mounts: [], devices: [] },
          environment: new Map([["PATH", dirname("/usr/bin/cat")]]),
          network: await egress.networkOf(profile),
        },
        AbortSignal.timeout(60_000),
      );
      const { stdout, stderr } = await (await sandbox.start({ argv })).exited;
      expect(stderr.text).toBe("");
      const [greeting, namespace = ""] = stdout.text.trim().split("\n");
      expect([greeting, sandbox.networkUsage?.connections]).toEqual(["greeting", 1]);
      namespaces.push(namespace);
    }
    return namespaces;
  };
}

test(
  "sandboxes with a list leave no descriptor, timer or network namespace",
  { tags: "promise-S34" },
  async (context) => {
    const openMany = await openSandboxes(context);
    await openMany(firstOnes);
    const before = await settled();
    const namespaces = await openMany(counted);
    expect(namespaces).toHaveLength(counted);
    await vi.waitFor(async () => {
      expect(grown(before, await heldHere())).toEqual([]);
      const inUse = await namespacesInUse();
      expect(namespaces.filter((namespace) => inUse.has(namespace))).toEqual([]);
    }, patience);
  },
);
