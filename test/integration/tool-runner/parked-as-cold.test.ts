/**
 * A runner that has waited for its call does what one does that was started for it: the tests of those, once more.
 */
import { parkRunners } from "./run-tool.ts";

parkRunners();

await import("./artifact-parameters.test.ts");
await import("./calling.test.ts");
await import("./class-tools.test.ts");
await import("./context.test.ts");
await import("./ending.test.ts");
await import("./facade.test.ts");
await import("./failures.test.ts");
await import("./results.test.ts");
await import("./stand-ins.test.ts");
await import("./statuses.test.ts");
await import("./tool-results.test.ts");
