/**
 * Counts what tools do with their networks, for `/metrics`: plain numbers, so that counting cannot
 * fail and needs no library.
 */
import type { MetricName, Sample, Samples } from "./catalog.ts";
import { ServedTools } from "./served-tools.ts";

/** What counts of an ended connection, or of what was refused in its place. */
export interface CountedConnection {
  readonly refusal?: string;
  readonly refusedPart?: "name" | "request";
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

/** Open connections of one sandbox. */
export interface OpenCount {
  readonly open: number;
}

/** The counts of one tool. */
export class ToolEgress {
  allowed = 0;
  refused = 0;
  refusedNames = 0;
  refusedRequests = 0;
  sentBytes = 0;
  receivedBytes = 0;
  readonly #sandboxes = new Set<OpenCount>();

  get open(): number {
    return this.#sandboxes.values().reduce((sum, { open }) => sum + open, 0);
  }

  /** Counts the open connections of a sandbox, until it is disposed. */
  follow(sandbox: OpenCount): Disposable {
    this.#sandboxes.add(sandbox);
    return { [Symbol.dispose]: () => void this.#sandboxes.delete(sandbox) };
  }

  ended({ refusal, refusedPart, sentBytes, receivedBytes }: CountedConnection): void {
    this.sentBytes += sentBytes;
    this.receivedBytes += receivedBytes;
    if (refusedPart === "name") this.refusedNames++;
    else if (refusedPart === "request") this.refusedRequests++;
    else if (refusal === undefined) this.allowed++;
    else this.refused++;
  }
}

/** The counts of the tools that a worker serves; a tool that it no longer serves loses them. */
export class EgressCounts {
  readonly #tools = new ServedTools(() => new ToolEgress());

  /** Those that have counts from now on. */
  serve(tools: Iterable<string>): void {
    this.#tools.serve(tools);
  }

  /** The counts of a tool for one call; those of a tool that is not served are not shown. */
  of(tool: string): ToolEgress {
    return this.#tools.of(tool);
  }

  readonly samples: Samples<EgressMetricName> = {
    str_egress_connections_total: () =>
      this.#each(({ allowed, refused }) => [
        { labels: { verdict: "allowed" }, value: allowed },
        { labels: { verdict: "refused" }, value: refused },
      ]),
    str_egress_bytes_total: () =>
      this.#each(({ sentBytes, receivedBytes }) => [
        { labels: { direction: "sent" }, value: sentBytes },
        { labels: { direction: "received" }, value: receivedBytes },
      ]),
    str_egress_open_connections: () => this.#each(({ open }) => [{ labels: {}, value: open }]),
    str_egress_refused_names_total: () =>
      this.#each(({ refusedNames: value }) => [{ labels: {}, value }]),
    str_egress_refused_requests_total: () =>
      this.#each(({ refusedRequests: value }) => [{ labels: {}, value }]),
  };

  #each(read: (counts: ToolEgress) => readonly Sample[]): readonly Sample[] {
    return this.#tools.samples(read);
  }
}

/** The metrics that are read here. */
type EgressMetricName = Extract<MetricName, `str_egress_${string}`>;
