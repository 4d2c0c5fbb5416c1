/**
 * Programs in a runner that has waited for its call, and tools with a gateway: the tests of those
 * that start cold, once more.
 *
 * @module-tag full
 */
import { parkRunners } from "../../integration/node-runner/gateway/gateway-run.ts";

parkRunners();

await import("../../integration/node-runner/gateway/programs.test.ts");
await import("../../integration/node-runner/gateway/tools.test.ts");
