/**
 * A runner in a fork, as in a child of a template, does what one does that was started for its
 * call: the tests of those, once more.
 *
 * @module-tag full
 */
import { forkRunners } from "../../integration/node-runner/run-node-tool.ts";

forkRunners();

await import("../../integration/node-runner/calling.test.ts");
await import("../../integration/node-runner/context.test.ts");
await import("../../integration/node-runner/ending.test.ts");
await import("../../integration/node-runner/examples.test.ts");
await import("../../integration/node-runner/failures.test.ts");
await import("../../integration/node-runner/imports.test.ts");
await import("../../integration/node-runner/json.test.ts");
await import("../../integration/node-runner/own-context.test.ts");
await import("../../integration/node-runner/results.test.ts");
await import("../../integration/node-runner/robustness.test.ts");
await import("../../integration/node-runner/statuses.test.ts");
