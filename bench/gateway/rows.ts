/**
 * Rows of calls by tools, and of those that they are compared with.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Agent } from "../../harness/agent.ts";
import type { JsonObject } from "../../worker/support/json/json.ts";
import type { Caller } from "../caller.ts";
import { callTimeoutSeconds } from "../environment.ts";
import type { Floor } from "../floor.ts";
import { type Row, timed } from "../measure.ts";
import { floorRow } from "../names.ts";
import { hitsOf } from "../stock.ts";
import { lightPython } from "../tools.ts";
import {
  byAgentRow,
  byToolRow,
  callingProgramRow,
  callsInARow,
  inProcessRow,
  innerRow,
  programRow,
  languages,
  listsRow,
  pausedAgentRow,
  pausedRow,
} from "./aims.ts";
import { callers, lightTool, plainProgramTool, programTool } from "./tools.ts";

/** Questions of which a round takes the median. */
const questions = 20;
/** Seconds in which the worker replaces the sandbox of the tool that calls, and then is idle. */
const pause = 0.5;

const leastProgram = { code: "__out = 1" };
const programs = [
  [programRow, plainProgramTool],
  [callingProgramRow, programTool],
] as const;

/** What the rows need. */
export interface RowParts {
  readonly floor: Floor;
  readonly caller: Caller;
  /** Beside a worker on the DevBroker. */
  readonly agent: Agent;
}

/** Every row; the times of questions and inner calls are taken inside. */
export function gatewayRows({ floor, caller, agent }: RowParts): readonly Row[] {
  const inside = (name: string, tool: string, args: JsonObject): Row => ({
    ...{ name, kind: "template", isAlone: true },
    run: async () => {
      const { toolResult, execution } = await caller.call(tool, args);
      const elapsedMs = Number(toolResult["ms"]);
      return { elapsedMs, ...(execution && { start: execution.start }) };
    },
    hits: () => hitsOf(caller.stock, tool),
  });
  const through = (name: string, run: () => Promise<void>): Row => ({
    ...{ name, kind: "batch", isAlone: true },
    run: timed(async () => {
      await run();
      return undefined;
    }),
  });
  const one = { tool: lightTool, count: 1, pause };
  return [
    {
      name: floorRow,
      kind: "floor",
      isAlone: true,
      run: async () => ({ elapsedMs: await floor.run() }),
    },
    ...languages.map((language) =>
      inside(listsRow(language), callers[language].lists, { count: questions }),
    ),
    {
      ...{ name: inProcessRow, kind: "template", isAlone: true },
      run: () => caller.invoke(lightPython),
      hits: () => hitsOf(caller.stock, lightTool),
    },
    ...programs.map(([name, tool]): Row => ({
      ...{ name, kind: "template", isAlone: true },
      run: timed(async () => (await caller.call(tool, leastProgram)).execution?.start),
      hits: () => hitsOf(caller.stock, tool),
    })),
    {
      ...{ name: pausedRow, kind: "template", isAlone: true },
      run: async () => {
        await sleep(pause * 1000);
        return await caller.invoke(lightPython);
      },
      hits: () => hitsOf(caller.stock, lightTool),
    },
    {
      ...{ name: pausedAgentRow, kind: "batch", isAlone: true },
      run: async () => {
        await sleep(pause * 1000);
        const startMs = performance.now();
        await call(agent, lightTool, {});
        return { elapsedMs: performance.now() - startMs };
      },
    },
    ...languages.map((language) => inside(innerRow(language), callers[language].calls, one)),
    through(byAgentRow, async () => {
      for (let n = 0; n < callsInARow; n++) await call(agent, lightTool, {});
    }),
    through(byToolRow, () =>
      call(agent, callers.Python.calls, { tool: lightTool, count: callsInARow }),
    ),
  ];
}

async function call(agent: Agent, tool: string, args: JsonObject): Promise<void> {
  const answer = await agent.call({ tool, args, timeoutSeconds: callTimeoutSeconds });
  if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
}
