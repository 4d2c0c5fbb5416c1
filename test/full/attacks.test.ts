/**
 * Every attack under every profile, by a worker that is root: through the start without a sandbox
 * that waits, and through a template.
 *
 * @module-tag full
 */
import { describeAttacks } from "../support/attack-ways.ts";

describeAttacks({
  who: "root",
  prefix: [],
  needsRoot: true,
  unenforced: [],
  starts: ["cold", "template", "import"],
});
