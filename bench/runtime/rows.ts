/**
 * Rows of executions of the library, each from `execute` to the value.
 */
import { type RuntimeBackend, createFunctionGateway } from "../../worker/runtime.ts";
import type { StartKind } from "../../worker/protocol/execution.ts";
import type { Floor } from "../floor.ts";
import { type Row, timed } from "../measure.ts";
import { floorRow } from "../names.ts";
import { bubblewrapRows, dockerRow, engineRow, unremovedRow, wasmRow } from "./aims.ts";
import type { DockerParts } from "./docker.ts";

/** What every execution runs: a value, without a call. */
export const code = "__out = 1";
const gateway = createFunctionGateway([]);

/** What the rows need. */
export interface RowParts {
  readonly floor: Floor;
  readonly wasm: RuntimeBackend;
  readonly bubblewrap: RuntimeBackend;
  /** Undefined where there is no engine. */
  readonly docker: DockerParts | undefined;
}

/** Every row; what is compared stands side by side. */
export function runtimeRows({ floor, wasm, bubblewrap, docker }: RowParts): readonly Row[] {
  return [
    {
      ...{ name: floorRow, kind: "floor", isAlone: true },
      run: async () => ({ elapsedMs: await floor.run() }),
    },
    executed(wasmRow, "batch", wasm, "javascript"),
    executed(bubblewrapRows.javascript, "pool", bubblewrap, "javascript"),
    executed(bubblewrapRows.python, "template", bubblewrap, "python"),
    ...(docker === undefined ? [] : containerRows(docker)),
  ];
}

function containerRows({ backend, container }: DockerParts): readonly Row[] {
  return [
    executed(dockerRow, "cold", backend, "python"),
    ...([engineRow, unremovedRow] as const).map((name): Row => ({
      ...{ name, kind: "cold", isAlone: true },
      run: async () => ({ elapsedMs: await container.run(name === engineRow) }),
    })),
  ];
}

function executed(name: string, kind: Row["kind"], backend: RuntimeBackend, language: string): Row {
  const request = { code, language, profile: "standard", gateway } as const;
  return {
    ...{ name, kind, isAlone: true },
    run: timed(async () => {
      const result = await backend.execute(request);
      if (result.value !== 1) throw new Error(`${name} came to ${JSON.stringify(result.value)}`);
      return result.backend.details["start"] as StartKind | undefined;
    }),
  };
}
