/**
 * A runner that has waited for its call does what one does that was started for it: the tests of
 * those, once more.
 *
 * @module-tag full
 */
import { parkRunners } from "../../integration/tool-runner/run-tool.ts";

parkRunners();

await import("../../integration/tool-runner/artifact-parameters.test.ts");
await import("../../integration/tool-runner/calling.test.ts");
await import("../../integration/tool-runner/classes/class-tools.test.ts");
await import("../../integration/tool-runner/context.test.ts");
await import("../../integration/tool-runner/ending.test.ts");
await import("../../integration/tool-runner/facade.test.ts");
await import("../../integration/tool-runner/failures.test.ts");
await import("../../integration/tool-runner/programs/failures.test.ts");
await import("../../integration/tool-runner/programs/values.test.ts");
await import("../../integration/tool-runner/results/results.test.ts");
await import("../../integration/tool-runner/stand-ins.test.ts");
await import("../../integration/tool-runner/statuses.test.ts");
await import("../../integration/tool-runner/results/tool-results.test.ts");
