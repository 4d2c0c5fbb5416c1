/**
 * Every attack through a sandbox that waits for its call. It is made as one that does not wait,
 * under every profile alike.
 *
 * @module-tag full
 */
import { describeAttacks } from "../support/doctor/attack-ways.ts";

describeAttacks({
  who: "a sandbox that waits",
  prefix: [],
  needsRoot: true,
  unenforced: [],
  choice: "pool",
  starts: ["pool"],
  profile: "standard",
});
