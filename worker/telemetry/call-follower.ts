/**
 * What a call tells of its way, to metrics and traces alike.
 */

/** The steps of a call in their order, with what each does. */
export const callSteps = {
  receive: "read the request, look for earlier deliveries, check the arguments",
  queue: "wait for a slot",
  acquire: "get a sandbox",
  stage: "load the inputs",
  run: "run the tool",
  collect: "read the result, save the outputs",
  publish: "publish the answer, settle the call",
} as const;

export type CallStep = keyof typeof callSteps;

/** What is known of a run when its sandbox has ended. */
export interface RunFacts {
  readonly start: string;
  /** Protections that this host lacks. */
  readonly unenforced: readonly string[];
  /** Undefined where unmeasured. */
  readonly cpuMs: number | undefined;
}

/** How a delivery ended. */
export interface CallEnding {
  /** `ok`, the code of an error, or why there was no answer. */
  readonly outcome: string;
  /** What the broker was told; `none`: nothing. */
  readonly settlement: string;
}

/**
 * Follows one delivery from its receipt, when `receive` begins, to its settlement. Methods neither
 * throw nor wait.
 */
export interface CallFollower {
  /** A step begins, and with it the one before ends. A call may end in any step. */
  enter(step: CallStep): void;
  /** The call is for this tool, which is served. */
  resolved(tool: string): void;
  /** It runs under this profile. */
  under(profile: string): void;
  /** The sandbox of the call has ended. */
  ran(facts: RunFacts): void;
  /** A limit, by its word in answers, has ended the call's sandbox. */
  limitReached(limit: string): void;
  /** The last that is told. */
  end(ending: CallEnding): void;
}

/** Follows nothing. */
export const followsNothing: CallFollower = {
  enter: () => undefined,
  resolved: () => undefined,
  under: () => undefined,
  ran: () => undefined,
  limitReached: () => undefined,
  end: () => undefined,
};
