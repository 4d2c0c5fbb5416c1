/**
 * Every attack under every profile by an ordinary user.
 *
 * @module-tag full
 */
import { asUser, coldStart, describeAttacks } from "../support/doctor/attack-ways.ts";

describeAttacks({
  who: "an ordinary user",
  prefix: process.getuid?.() === 0 ? asUser : [],
  needsRoot: false,
  unenforced: [],
  ...coldStart,
});
