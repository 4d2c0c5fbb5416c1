/**
 * The tests of Node runners that are started for their calls, to be run another way once more.
 */
import "../../integration/node-runner/calling.test.ts";
import "../../integration/node-runner/context.test.ts";
import "../../integration/node-runner/ending.test.ts";
import "../../integration/node-runner/examples.test.ts";
import "../../integration/node-runner/failures.test.ts";
import "../../integration/node-runner/imports.test.ts";
import "../../integration/node-runner/json.test.ts";
import "../../integration/node-runner/own-context.test.ts";
import "../../integration/node-runner/results.test.ts";
import "../../integration/node-runner/robustness.test.ts";
import "../../integration/node-runner/statuses.test.ts";
