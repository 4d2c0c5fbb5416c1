/**
 * The events of a call that metrics and traces follow.
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

/** A limit of a run, and what enforced it. */
export interface EnforcedLimit {
  /** Its word in answers. */
  readonly limit: string;
  readonly bound: number;
  readonly unit: string;
  /** `kernel`, `guard` or `none`. */
  readonly by: string;
}

/** What is known of a run when its sandbox has ended. */
export interface RunFacts {
  readonly start: string;
  readonly backend: string;
  readonly limits: readonly EnforcedLimit[];
  /** Protections that this host lacks. */
  readonly unenforced: readonly string[];
  /** Undefined where unmeasured. */
  readonly cpuMs: number | undefined;
  /** Undefined where unmeasured. */
  readonly peakMemoryBytes: number | undefined;
}

/** Output streams of a tool. */
export type OutputStream = "stdout" | "stderr";

/** What is known of a delivery when it is received. */
export interface ReceivedCall {
  /** This delivery included. */
  readonly deliveryCount: number;
  /** Undefined where the broker has no queues. */
  readonly queue: string | undefined;
  /** The id by which its caller knows the call; undefined without a reply topic. */
  readonly correlationId: string | undefined;
  /** The W3C trace context that the call brought, if it is valid. */
  readonly traceparent: string | undefined;
  /** Whether a tool of this worker makes the call: no delivery brings it. Default: false. */
  readonly isNested?: boolean;
}

/** The trace of a call. */
export interface CallTrace {
  readonly traceId: string;
  /** Whether it is recorded. */
  readonly isSampled: boolean;
  /**
   * W3C trace context within a step, for what the step starts or sends. Of another step than the
   * present one it is that of the next time that it is entered.
   */
  traceparentOf(step: CallStep): string;
}

/** How a delivery ended. */
export interface CallEnding {
  /** `ok`, the code of an error, or why there was no answer. */
  readonly outcome: string;
  /** How the delivery was settled; `none` if the broker does not know. */
  readonly settlement: string;
}

/**
 * Follows one delivery from its receipt, when `receive` begins, to its settlement. Methods neither
 * throw nor wait.
 */
export interface CallFollower {
  /** Undefined without tracing. */
  readonly trace?: CallTrace | undefined;
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
  /** From now on to its end the call can be cancelled, as its caller can do it. */
  cancellable?(cancel: () => void): void;
  /** A status of the tool is on its way to the caller. */
  status?(text: string): void;
  /** The tool has printed. Output is followed only for followers that have this. */
  readonly printed?: ((stream: OutputStream, chunk: Uint8Array) => void) | undefined;
  /** The delivery has ended; no other method is called afterwards. */
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

/** Passes each event on to all of them; the trace is that of the first with one. */
export function followAll(followers: readonly CallFollower[]): CallFollower {
  const tell = (say: (follower: CallFollower) => void): void => followers.forEach(say);
  const readers = followers.flatMap(({ printed }) => printed ?? []);
  return {
    trace: followers.find(({ trace }) => trace !== undefined)?.trace,
    enter: (step) => tell((follower) => follower.enter(step)),
    resolved: (tool) => tell((follower) => follower.resolved(tool)),
    under: (profile) => tell((follower) => follower.under(profile)),
    ran: (facts) => tell((follower) => follower.ran(facts)),
    limitReached: (limit) => tell((follower) => follower.limitReached(limit)),
    cancellable: (cancel) => tell((follower) => follower.cancellable?.(cancel)),
    status: (text) => tell((follower) => follower.status?.(text)),
    printed:
      readers.length === 0
        ? undefined
        : (stream, chunk) => readers.forEach((read) => read(stream, chunk)),
    end: (ending) => tell((follower) => follower.end(ending)),
  };
}
