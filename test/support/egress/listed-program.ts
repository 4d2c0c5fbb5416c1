/**
 * Python programs in sandboxes that have a list, for processes of tests.
 */
import type { Egress } from "../../../worker/egress/fabric.ts";
import type { NetworkRefusal } from "../../../worker/protocol/execution.ts";
import { networkField, toNetwork } from "../../../worker/protocol/network-rules.ts";
import { restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import type { NetworkPlace } from "../sandboxes/network-place.ts";

/** Runs a program to its end; the lines that it printed, and what the network refused. */
export async function runListed(
  { backend }: Pick<NetworkPlace, "backend">,
  egress: Egress,
  allow: readonly unknown[],
  program: string,
): Promise<{
  readonly lines: readonly string[];
  readonly refusals: readonly NetworkRefusal[] | undefined;
}> {
  const profile = { ...restrictiveProfile, network: toNetwork(networkField.parse({ allow })) };
  await using sandbox = await backend.acquire(
    {
      ...{ profile, memoryBound: "address-space", mounts: [], devices: [] },
      environment: new Map([["PATH", "/usr/bin:/bin"]]),
      network: await egress.networkOf(profile),
    },
    AbortSignal.timeout(30_000),
  );
  const execution = await sandbox.start({ argv: ["/usr/bin/python3", "-c", program] });
  const { stdout, stderr } = await execution.exited;
  const lines = `${stdout.text}${stderr.text}`.trimEnd().split("\n");
  return { lines, refusals: sandbox.networkUsage?.refusals };
}
