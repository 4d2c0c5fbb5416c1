/**
 * A span as plain data, which can be sent to a thread.
 */

/** A span that has ended. */
export interface Span {
  readonly name: string;
  readonly kind: "consumer" | "internal" | "producer";
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  /** Whether the parent is another process's. */
  readonly isParentRemote: boolean;
  /** Epoch milliseconds with fractions. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: SpanAttributes;
  readonly isFailed: boolean;
}

export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;
