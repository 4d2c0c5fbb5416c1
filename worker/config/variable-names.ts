/**
 * Variables that look like the worker's and are not: misspelt ones, and ones that nobody knows.
 */
import { secretFileVariables } from "./secret-files.ts";
import { nearest } from "../support/text/near-miss.ts";
import { type Environment, variableAliases } from "./variable-aliases.ts";
import { variables } from "./variables.ts";

/** How the worker's variables begin. */
const prefixes = [
  ...[
    "SAM_",
    "WORKER_",
    "DEV_BROKER_",
    "SOLACE_",
    "AMQP_",
    "BROKER_",
    "CONNECT_RETR",
    "MANIFEST_",
    "TOOLS_",
    "TOOLSETS_",
    "TOOL_LOGS",
  ],
  ...[
    "DEFAULT_TIMEOUT",
    "CREDENTIAL_",
    "SANDBOX_",
    "WARM_",
    "PACKAGE_",
    "ARTIFACT_",
    "AUDIT_",
    "HEALTH_",
    "CONSOLE_",
    "RUNTIME_",
    "DRAIN_",
    "LOG_",
  ],
];

const known = new Set([
  ...variableAliases.keys(),
  ...Object.keys(variables.shape),
  ...secretFileVariables,
]);

/** A line for each variable whose name is a known one with a slip in it. */
export function misspeltVariables(environment: Environment): readonly string[] {
  return unknownNames(environment).flatMap((name) => {
    const meant = nearest(name, known);
    return meant === undefined ? [] : [`${name}: there is no such variable; ${meant} is meant`];
  });
}

/** A line for each variable that begins like the worker's, and that it does not know. */
export function unknownVariables(environment: Environment): readonly string[] {
  return unknownNames(environment)
    .filter((name) => nearest(name, known) === undefined)
    .map((name) => `${name}: there is no such variable of the worker; it is not used`);
}

function unknownNames(environment: Environment): readonly string[] {
  return Object.entries(environment).flatMap(([name, value]) => {
    if (value === undefined || value === "" || known.has(name)) return [];
    if (!prefixes.some((prefix) => name.startsWith(prefix))) return [];
    return isServiceLink(name, value) ? [] : [name];
  });
}

/**
 * Whether Kubernetes sets it in every pod, for a service that is called like a prefix (core/v1
 * Service, "environment variables").
 */
function isServiceLink(name: string, value: string): boolean {
  if (/_SERVICE_(?:HOST|PORT)(?:_\w+)?$/.test(name)) return true;
  if (/_PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/.test(name)) return true;
  return name.endsWith("_PORT") && /^(?:tcp|udp|sctp):\/\//.test(value);
}
