/**
 * Tools that name hosts, where nothing keeps them to these.
 */
import { describe, expect, test } from "vitest";
import {
  type Network,
  networkField,
  publicNetwork,
  toNetwork,
} from "../../../worker/protocol/network-rules.ts";
import { WorkerEndpoints } from "../../../worker/egress/resolve.ts";
import { Egress } from "../../../worker/egress/fabric.ts";
import type { ToolEntry } from "../../../worker/manifest/manifest.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { NetworkAdmission } from "../../../worker/wiring/network.ts";
import { openNetworkPlace } from "../../support/sandboxes/network-place.ts";
import { keptLog } from "../../support/workers/kept-log.ts";

const never = AbortSignal.any([]);
const listed = toNetwork(networkField.parse({ allow: ["api.example.com"] }));
const standard = builtInProfiles.get("standard")!;
const profiles = new Map([
  ...builtInProfiles,
  ["open", { ...standard, name: "open", backend: "host" }],
  ["listed", { ...standard, name: "listed", network: listed }],
]);

const tool = (network: ToolEntry["network"], profile?: string): ToolEntry =>
  ({ name: "t", network, profile }) as unknown as ToolEntry;

async function admissionBy(pythonBin: string | undefined, hostNetwork: Network = "host") {
  const place = await openNetworkPlace(pythonBin);
  const { backend } = place;
  const resolve = (): Promise<readonly string[]> => Promise.resolve([]);
  const { scratchDir } = backend;
  const endpoints = new WorkerEndpoints([], systemClock);
  const egress = await Egress.open({ scratchDir, resolve, endpoints, clock: systemClock });
  const log = keptLog();
  const shared = { profiles, defaultProfile: "standard", hostNetwork } as const;
  const parts = { egress, backend, log, ...shared };
  const admission = new NetworkAdmission(parts);
  return { admission, log, [Symbol.asyncDispose]: () => place[Symbol.asyncDispose]() };
}

describe("a tool whose network has a list", { tags: "promise-S34" }, () => {
  test("is served where a trial holds, under every profile that isolates", async () => {
    await using given = await admissionBy(undefined);
    expect(await given.admission.refuse(tool(listed), never)).toBeUndefined();
    expect(await given.admission.refuse(tool(undefined, "listed"), never)).toBeUndefined();
    expect(await given.admission.refuse(tool(listed, "open"), never)).toMatchObject({
      publicReason: "the backend host cannot keep a tool to some hosts",
    });
  });

  test("is not served where no socket can be made inside; others are", async () => {
    await using given = await admissionBy("/usr/bin/false");
    expect(await given.admission.refuse(tool(listed), never)).toMatchObject({
      publicReason: "this host cannot keep a tool to some hosts",
    });
    expect(given.log.events).toEqual(["sandbox.network_missing"]);
    for (const network of ["none", "host"] as const)
      expect(await given.admission.refuse(tool(network), never)).toBeUndefined();
    expect(await given.admission.refuse(tool(undefined, "permissive"), never)).toBeUndefined();
  });

  test("is not served either when that is the default, with the ways out for the operator", async () => {
    await using given = await admissionBy("/usr/bin/false");
    const silent = await given.admission.refuse(tool(undefined), never);
    expect(silent?.publicReason).toBe("this host cannot keep a tool to some hosts");
    expect(silent?.reason).toContain("deploy/seccomp.json");
    expect(silent?.reason).toContain("network: none");
    expect(silent?.reason).toContain("SANDBOX_DEFAULT_NETWORK=host");
    const said = await given.admission.refuse(tool(publicNetwork), never);
    expect(said?.reason).not.toContain("SANDBOX_DEFAULT_NETWORK");
  });

  test(
    "is every one with the host's network, where that is replaced",
    { tags: "full" },
    async () => {
      await using given = await admissionBy("/usr/bin/false", publicNetwork);
      for (const one of [tool("host"), tool(undefined, "permissive")])
        expect(await given.admission.refuse(one, never)).toBeDefined();
      expect(await given.admission.refuse(tool("none"), never)).toBeUndefined();
    },
  );
});
