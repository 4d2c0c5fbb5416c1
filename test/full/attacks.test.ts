/**
 * Every attack under every profile, through every start of calls, by a worker that is root.
 *
 * @module-tag full
 */
import { describeAttacks } from "../support/attack-ways.ts";

describeAttacks({
  who: "root",
  prefix: [],
  needsRoot: true,
  unenforced: [],
  choice: "all",
  starts: ["cold", "pool", "template", "import"],
});
