/**
 * Entry of the Node tool runner: `node main.js RUNNER_ARGS_FILE`. See tool-runner/PROTOCOL.md.
 */
import { runCall } from "./runner.js";

await runCall(process.argv.splice(2));
