/**
 * Every attack under every profile by an ordinary user.
 *
 * @module-tag full
 */
import { asUser, coldStart, describeAttacks } from "../support/doctor/attack-ways.ts";
import { isRoot } from "../support/is-root.ts";

describeAttacks({
  who: "an ordinary user",
  prefix: isRoot ? asUser : [],
  needsRoot: false,
  unenforced: [],
  ...coldStart,
});
