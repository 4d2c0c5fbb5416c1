/**
 * A runner that has waited for its call does what one does that was started for it: the tests of those, once more.
 */
import { parkRunners } from "./run-node-tool.ts";

parkRunners();

await import("./calling.test.ts");
await import("./context.test.ts");
await import("./ending.test.ts");
await import("./examples.test.ts");
await import("./failures.test.ts");
await import("./imports.test.ts");
await import("./json.test.ts");
await import("./own-context.test.ts");
await import("./results.test.ts");
await import("./robustness.test.ts");
await import("./statuses.test.ts");
