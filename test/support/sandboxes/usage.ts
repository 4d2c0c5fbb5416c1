import type { Usage } from "../../../worker/sandbox/sandbox.ts";

/** What a command used that nobody measured. */
export const unmeasured: Usage = {
  wallMs: 1,
  cpuMs: undefined,
  peakMemoryBytes: undefined,
  peakProcesses: undefined,
};
