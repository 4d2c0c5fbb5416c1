/**
 * Every attack, in the order of the report.
 */
import type { Attack } from "./attack.ts";
import { egressAttacks } from "./catalog/egress.ts";
import { gatewayAttacks } from "./catalog/gateway.ts";
import { filesAttacks } from "./catalog/files.ts";
import { kernelAttacks } from "./catalog/kernel.ts";
import { limitsAttacks } from "./catalog/limits.ts";
import { networkAttacks } from "./catalog/network.ts";
import { privilegesAttacks } from "./catalog/privileges.ts";
import { processesAttacks } from "./catalog/processes.ts";
import { tracesAttacks } from "./catalog/traces.ts";
import { workerAttacks } from "./catalog/worker.ts";

/** All attacks. */
export const attacks: readonly Attack[] = [
  ...filesAttacks,
  ...processesAttacks,
  ...privilegesAttacks,
  ...kernelAttacks,
  ...networkAttacks,
  ...egressAttacks,
  ...gatewayAttacks,
  ...tracesAttacks,
  ...limitsAttacks,
  ...workerAttacks,
];
