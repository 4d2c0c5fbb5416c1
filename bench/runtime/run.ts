/**
 * What executions of the library cost.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { openBubblewrap, openWasm } from "../../worker/runtime.ts";
import { openFloor } from "../floor.ts";
import { measure } from "../measure.ts";
import { type DockerParts, NoDocker, openDockerParts } from "./docker.ts";
import { code, runtimeRows } from "./rows.ts";
import type { MeasuredRuntime } from "./table.ts";

/** Milliseconds before each run, in which backends replace what the last one has used. */
const pauseMs = 300;

/** Opens the backends, and measures everything. */
export async function measureRuntime(rounds: number): Promise<MeasuredRuntime> {
  await using stack = new AsyncDisposableStack();
  const floor = stack.use(await openFloor(1));
  const wasm = stack.use(await openWasm());
  const bubblewrap = stack.use(await openBubblewrap({ warm: { min: 1, max: 1 } }));
  const docker = await dockerOrProblem();
  const parts = typeof docker === "string" ? undefined : stack.use(docker);
  const rows = await measure(
    runtimeRows({ floor, wasm, bubblewrap, docker: parts }),
    rounds,
    async () => {
      await parts?.quiet();
      await sleep(pauseMs);
    },
  );
  return { rows, docker: typeof docker === "string" ? docker : docker.technology };
}

async function dockerOrProblem(): Promise<DockerParts | string> {
  try {
    return await openDockerParts(code);
  } catch (error) {
    if (error instanceof NoDocker) return `not measured, ${error.message}`;
    throw error;
  }
}
