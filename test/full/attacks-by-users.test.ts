/**
 * Every attack under every profile by an ordinary user, also in what a container makes of /proc. What other users are for is the
 * same for every start of calls.
 *
 * @module-tag full
 */
import { describeAttacks } from "../support/attack-ways.ts";

const isRoot = process.getuid?.() === 0;

/** An ordinary user without any capability, or the way to one. */
const user = "60002";
const asUser = [
  ...["setpriv", "--reuid", user, "--regid", user, "--clear-groups"],
  ...["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"],
];
/** Parts of /proc are covered, as in a container: then the kernel lets nobody mount a new one. */
const maskingProc = [
  ...["unshare", "--mount", "--propagation", "private", "sh", "-c"],
  ...['mount --bind /dev/null /proc/timer_list && mount -t tmpfs none /proc/fs && exec "$@"', "sh"],
];

const coldStart = { choice: "cold", starts: ["cold"] } as const;

describeAttacks({
  ...{ who: "an ordinary user", prefix: isRoot ? asUser : [], needsRoot: false },
  ...{ unenforced: [], ...coldStart },
});

describeAttacks({
  who: "a user without capabilities and with a masked /proc",
  prefix: [...maskingProc, ...asUser],
  needsRoot: true,
  unenforced: ["fresh-proc"],
  ...coldStart,
});
