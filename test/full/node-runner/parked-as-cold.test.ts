/**
 * A runner that has waited for its call does what one does that was started for it: the tests of
 * those, once more.
 *
 * @module-tag full
 */
import { parkRunners } from "../../integration/node-runner/run-node-tool.ts";

parkRunners();

// After it was said how.
await import("./runner-tests.ts");
