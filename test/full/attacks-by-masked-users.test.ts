/**
 * Every attack by an ordinary user, in what a container makes of /proc, which every profile gets
 * alike.
 *
 * @module-tag full
 */
import { asUser, coldStart, describeAttacks } from "../support/doctor/attack-ways.ts";

/** Parts of /proc are covered: then the kernel lets nobody mount a new one. */
const maskingProc = [
  ...["unshare", "--mount", "--propagation", "private", "sh", "-c"],
  ...['mount --bind /dev/null /proc/timer_list && mount -t tmpfs none /proc/fs && exec "$@"', "sh"],
];

describeAttacks({
  who: "a user without capabilities and with a masked /proc",
  prefix: [...maskingProc, ...asUser],
  needsRoot: true,
  unenforced: ["fresh-proc"],
  ...coldStart,
  profile: "standard",
});
