/**
 * What a template is told of the sandboxes that it is to make: tool-runner/PROTOCOL.md,
 * "Templates".
 */
import type { Limits } from "../../../protocol/resource-limits.ts";
import { rlimitsFor } from "../../rlimits.ts";
import { SandboxError, type SandboxRequest } from "../../sandbox.ts";
import { memoryDirectories } from "../cold-sandbox.ts";
import { toolFilter } from "../filters.ts";
import type { HostFacts } from "../probe/probe.ts";

/**
 * Files that a memory file system takes more than the sandbox may have, so that whoever watches
 * that sees it exceeded.
 */
const spareFiles = 1_000;

/** What the settings say of a request. */
type SettingsRequest = Pick<SandboxRequest, "profile" | "memoryBound" | "hasGateway">;

/**
 * The first line that a template reads. Throws SandboxError where this host cannot keep its
 * children as apart as others.
 */
export function templateSettings(
  { profile, memoryBound, hasGateway }: SettingsRequest,
  limits: Limits,
  host: HostFacts,
): string {
  const filter = toolFilter(host, profile);
  if (filter === undefined)
    throw unfit("there is no system-call filter for the children of a template");
  if (host.proc !== "fresh")
    throw unfit("the children of a template cannot have a /proc of their own");
  const size = `mode=0755,size=${limits.tmpBytes},nr_inodes=${limits.files + spareFiles}`;
  const directories = memoryDirectories(profile);
  const rlimits = rlimitsFor(limits, memoryBound, host.hardLimits);
  return JSON.stringify({
    network: profile.network === "host",
    terminals: profile.terminals,
    gateway: hasGateway ?? false,
    tmpfs: Object.fromEntries(directories.map((directory) => [directory, size])),
    filter: Buffer.from(filter).toString("hex"),
    // JSON writes null for those that are infinite.
    limits: Object.fromEntries(
      rlimits.map(({ name, soft, hard }) => [name.toUpperCase(), [soft, hard]]),
    ),
  });
}

/** No later attempt can do better: this host does not change while the worker runs. */
function unfit(message: string): SandboxError {
  return new SandboxError(message, { isUnfit: true });
}
