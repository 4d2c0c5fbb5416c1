/**
 * Python programs in sandboxes that have a network, for processes of tests.
 */
import type { Egress } from "../../../worker/egress/fabric.ts";
import type { NetworkRefusal } from "../../../worker/protocol/execution.ts";
import { networkField, toNetwork } from "../../../worker/protocol/network-rules.ts";
import { type Profile, restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import type { NetworkPlace } from "../sandboxes/network-place.ts";

/** The lines that a program printed, and what its network refused. */
interface ProgramEnd {
  readonly lines: readonly string[];
  readonly refusals: readonly NetworkRefusal[] | undefined;
}

/** Runs a program with a list of hosts to its end. */
export function runListed(
  place: Pick<NetworkPlace, "backend">,
  egress: Egress,
  allow: readonly unknown[],
  program: string,
): Promise<ProgramEnd> {
  const network = toNetwork(networkField.parse({ allow }));
  return runInNetwork(place, egress, { ...restrictiveProfile, network }, program);
}

/** Runs a program with the network of a profile to its end. */
export async function runInNetwork(
  { backend }: Pick<NetworkPlace, "backend">,
  egress: Egress,
  profile: Profile,
  program: string,
): Promise<ProgramEnd> {
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
