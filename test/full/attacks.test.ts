/**
 * Every attack under every profile through a template, by a worker that is root. Without one, they
 * are in `attacks-by-users.test.ts`.
 *
 * @module-tag full
 */
import { describeAttacks } from "../support/doctor/attack-ways.ts";

describeAttacks({
  who: "root",
  prefix: [],
  needsRoot: true,
  unenforced: [],
  choice: "template",
  starts: ["template", "import"],
});
