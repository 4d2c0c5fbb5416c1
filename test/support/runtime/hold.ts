/**
 * A process that opens a backend of the library and, if it is given code, executes it. Its
 * arguments are the kind, a JSON of variables, and the code, which says by the tool `test:runs`
 * that it runs.
 */
import type { SandboxedOptions } from "../../../worker/runtime.ts";
import {
  createFunctionGateway,
  openBubblewrap,
  openContainerd,
  openDocker,
  openGvisor,
} from "../../../worker/runtime.ts";
import type { HeldKind } from "./holding-process.ts";

const openers = {
  bubblewrap: openBubblewrap,
  docker: openDocker,
  containerd: openContainerd,
  gvisor: openGvisor,
} as const;

const [, , kind = "", variables = "", code = ""] = process.argv;
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const options: SandboxedOptions = {
  ...{ languages: ["python"], variables: JSON.parse(variables) as Record<string, string> },
};
await using backend = await openers[kind as HeldKind](options);
say("open");
const runs = { id: "test:runs", run: () => (say("runs"), {}) };
if (code !== "")
  await backend.execute({
    ...{ code, gateway: createFunctionGateway([runs]), timeoutMs: 3_600_000 },
  });
