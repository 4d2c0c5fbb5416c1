/**
 * A runner in a fork, as in a child of a template, does what one does that was started for its
 * call: the tests of those, once more.
 *
 * @module-tag full
 */
import { forkRunners } from "../../integration/node-runner/run-node-tool.ts";

forkRunners();

// After it was said how.
await import("./runner-tests.ts");
