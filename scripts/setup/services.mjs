/**
 * Installs packages that bring services without any of them being started, now or at the next boot:
 * a test starts its own, on loopback, and Debian would start one on every interface.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { SetupError } from "./report.mjs";

/** What Debian asks before it starts a service (invoke-rc.d(8)), and the answer for "no". */
const policyFile = "/usr/sbin/policy-rc.d";
const denied = 101;

const ownPolicy = `#!/bin/sh
# From the setup of secure-tool-runtime, for the time of an installation. Else remove it.
exit ${denied}
`;
const unitDirectory = "/usr/lib/systemd/system";
const systemctl = "/usr/bin/systemctl";

/**
 * Runs `install` while no service may start, and disables those of `units` that it brought. Throws
 * SetupError when the machine has a policy of its own that allows them to start.
 *
 * @param prefix what makes a command run as root
 */
export async function withServicesDown(prefix, units, install) {
  const isNew = units.filter((unit) => !existsSync(`${unitDirectory}/${unit}`));
  const isOurs = denyStarts(prefix);
  try {
    await install();
  } finally {
    const brought = isNew.filter((unit) => existsSync(`${unitDirectory}/${unit}`));
    if (brought.length > 0 && existsSync(systemctl))
      asRoot(prefix, [systemctl, "disable", ...brought]);
    if (isOurs) asRoot(prefix, ["rm", "-f", policyFile]);
  }
}

/** Whether the policy is ours, and to be removed again. */
function denyStarts(prefix) {
  if (existsSync(policyFile)) {
    if (readFileSync(policyFile, "utf8") === ownPolicy) return true;
    if (asRoot(prefix, [policyFile, "rabbitmq-server", "start"]).status === denied) return false;
    throw new SetupError(`${policyFile} allows services to start, so none is installed`);
  }
  const write = `set -C; cat > ${policyFile} && chmod 755 ${policyFile}`;
  const written = asRoot(prefix, ["sh", "-c", write], ownPolicy);
  if (written.status === 0) return true;
  throw new SetupError(`cannot keep services from starting: ${written.stderr}`);
}

function asRoot(prefix, command, input = "") {
  const [program, ...args] = [...prefix, ...command];
  return spawnSync(program, args, { input, stdio: ["pipe", "ignore", "pipe"], encoding: "utf8" });
}
