/**
 * A backend under a check.
 */
import type { ToolGateway } from "../../gateway/gateway.ts";
import type { ExecuteOptions, RuntimeBackend } from "../api/backend.ts";
import type { ExecuteRequest } from "../api/request.ts";
import type { ExecuteResult } from "../api/result.ts";
import { type Programs, checkedLanguages, programs } from "./programs.ts";
import { checkGateway } from "./tools.ts";

/** A backend under a check. */
export interface UnderCheck {
  readonly backend: RuntimeBackend;
  readonly programs: Programs;
  /** Runs code in the checks' language, with the checks' tools. */
  run(
    code: string,
    more?: Partial<ExecuteRequest>,
    options?: ExecuteOptions,
  ): Promise<ExecuteResult>;
}

/** A check of a backend. */
export type BackendCheck = readonly [name: string, check: (under: UnderCheck) => Promise<void>];

/** What decides how code is run for checks. */
export interface CheckedCode {
  /** For executions whose code calls no tool; one over functions by default. */
  readonly newGateway?: () => ToolGateway;
  /** The language of the checks' code; by default the backend's, javascript before python. */
  readonly language?: string;
}

/** A backend, with code in a language that it runs. */
export function underCheck(backend: RuntimeBackend, contract: CheckedCode): UnderCheck {
  const { language = checkedLanguages.find((each) => backend.languages.includes(each)) } = contract;
  const known = checkedLanguages.find((each) => each === language) ?? "javascript";
  const gateway = contract.newGateway?.() ?? checkGateway();
  const own = checkGateway();
  const code = programs[known];
  const callsTools = new Set([
    code.calls,
    code.chain,
    code.caughtError,
    code.lookups,
    code.manyCalls,
    code.longChain,
  ]);
  return {
    backend,
    programs: code,
    run: (text, more, options) =>
      backend.execute(
        {
          ...{ code: text, gateway: callsTools.has(text) ? own : gateway },
          ...(language !== undefined && { language }),
          ...more,
        },
        options,
      ),
  };
}
