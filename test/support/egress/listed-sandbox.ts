/**
 * Sandboxes whose network has a list, with names that lead where a test says.
 */
import { dirname } from "node:path";
import { onTestFinished } from "vitest";
import { Egress } from "../../../worker/egress/fabric.ts";
import { type Resolve, WorkerEndpoints } from "../../../worker/egress/resolve.ts";
import { parseManifest } from "../../../worker/manifest/parse.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import type { Sandbox, SandboxRequest } from "../../../worker/sandbox/sandbox.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import type { NetworkPlace } from "../sandboxes/network-place.ts";

/** A sandbox, and how to run programs in it. */
export interface ListedSandbox {
  readonly sandbox: Sandbox;
  /** Messages about credentials that could not be used. */
  readonly complaints: readonly string[];
  /** Runs a program to its end; what it prints. */
  run(argv: readonly string[]): Promise<{ readonly stdout: string; readonly stderr: string }>;
}

/** What its manifest says, and what surrounds the worker. */
export interface ListedOptions {
  readonly allow: readonly unknown[];
  readonly credentials?: Readonly<Record<string, unknown>>;
  readonly environment?: Readonly<Record<string, string>>;
  readonly maxConnections?: number;
  /** Where names lead; to 127.0.0.1 unless given. */
  readonly resolve?: Resolve;
  readonly mounts?: SandboxRequest["mounts"];
  /** Variables inside. */
  readonly variables?: Readonly<Record<string, string>>;
}

/** The Node of the tests, inside. */
export const nodeInside = "/opt/node/node";

const toLoopback: Resolve = () => Promise.resolve(["127.0.0.1"]);

/** The sandbox ends with the test. */
export async function listedSandbox(
  { backend }: Pick<NetworkPlace, "backend">,
  {
    allow,
    credentials = {},
    environment = {},
    variables = {},
    maxConnections,
    resolve = toLoopback,
    mounts = [],
  }: ListedOptions,
): Promise<ListedSandbox> {
  const tool = { module: "m", function: "f", network: { allow, max_connections: maxConnections } };
  const text = JSON.stringify({ version: 1, credentials, tools: { tool } });
  const options = { path: "manifest", profileNames: [...builtInProfiles.keys()] };
  const { network } = parseManifest(Buffer.from(text), options).manifest.tools.get("tool")!;
  const profile = { ...builtInProfiles.get("standard")!, network: network! };
  const complaints: string[] = [];
  const egress = await Egress.open({
    ...{ scratchDir: backend.scratchDir, resolve, clock: systemClock },
    endpoints: new WorkerEndpoints([], systemClock),
    credentials: { environment, onFailed: ({ message }) => complaints.push(message) },
  });
  const opened = await egress.networkOf(profile);
  const sandbox = await backend.acquire(
    {
      ...{ profile, memoryBound: "resident", devices: [], network: opened },
      mounts: [{ source: dirname(process.execPath), target: "/opt/node" }, ...mounts],
      environment: new Map([
        ...[["PATH", "/usr/bin:/bin"] as const, ...Object.entries(variables)],
        ...opened!.environment,
      ]),
    },
    AbortSignal.any([]),
  );
  onTestFinished(() => sandbox[Symbol.asyncDispose]());
  return {
    sandbox,
    complaints,
    run: async (argv) => {
      const { stdout, stderr } = await (await sandbox.start({ argv })).exited;
      return { stdout: stdout.text, stderr: stderr.text };
    },
  };
}
