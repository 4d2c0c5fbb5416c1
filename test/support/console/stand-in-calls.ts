/** The calls of the stand-in server: recorded ones, and those that a page makes. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type {
  CallDetail,
  CallView,
  NewCall,
  OutputView,
  StatusView,
} from "../../../worker/console/api.ts";
import {
  recordedArtifacts,
  recordedCall,
  recordedCalls,
  recordedSamples,
  recordedView,
  richDetail,
  runningCall,
} from "./recorded-worker.ts";
import { bodyOf, fail, send } from "./responses.ts";

/** Between the things that a running call tells. */
const stepMs = 150;
const slowSteps = 40;

export class StandInCalls {
  readonly #emit: (name: string, data: unknown) => void;
  readonly #calls = new Map<string, CallDetail>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #startedAtMs = Date.now();

  constructor(emit: (name: string, data: unknown) => void) {
    this.#emit = emit;
    for (const call of recordedCalls(this.#startedAtMs).toReversed()) {
      this.#calls.set(call.id, call.id === "rich" ? richDetail(call) : detailOf(call, null));
    }
  }

  /** The first events of a stream. */
  beginning(): readonly (readonly [name: string, data: unknown])[] {
    const calls = [...this.#calls.values()].map(({ call }) => call).toReversed();
    return [
      ["state", recordedView(this.#startedAtMs)],
      ["calls", calls],
      ["samples", recordedSamples(this.#startedAtMs)],
    ];
  }

  async answer(route: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, input] = /^PUT \/api\/inputs\/([^/]+)$/.exec(route) ?? [];
    const [, id = "", artifact] = /\/api\/calls\/([^/]+)(?:\/artifacts\/(\d+))?/.exec(route) ?? [];
    if (input !== undefined) {
      const sizeBytes = (await bodyOf(request)).length;
      return send(response, 201, { filename: decodeURIComponent(input), version: 0, sizeBytes });
    }
    if (route === "POST /api/calls") {
      const call = JSON.parse(await bodyOf(request)) as NewCall;
      return send(response, 201, { id: this.#start(call) });
    }
    const detail = this.#calls.get(id);
    if (detail === undefined) return fail(response, 404, "There is no such call.");
    if (route.endsWith("/cancel")) {
      if (detail.call.outcome !== null) return fail(response, 409, "The call has ended.");
      this.#end(id, { outcome: "CANCELLED", isCancelled: true }, null);
      return send(response, 202);
    }
    if (artifact === undefined) return send(response, 200, detail);
    const { view, bytes } = recordedArtifacts[Number(artifact)]!;
    response.writeHead(200, { "content-type": view.mimeType, "x-content-type-options": "nosniff" });
    response.end(bytes);
  }

  stop(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  #start(request: NewCall): string {
    const number = this.#calls.size + 1;
    const changes = { id: `own-${number}`, tool: request.tool, isOwn: true, correlationId: null };
    const call = runningCall(number, Date.now(), changes);
    this.#calls.set(call.id, detailOf(call, request));
    this.#emit("call", call);
    this.#step(call.id, request, request.tool === "slow_tool" ? slowSteps : 2);
    return call.id;
  }

  #step(id: string, request: NewCall, left: number): void {
    const timer = setTimeout(() => {
      if (left === 0) {
        const result = { tool_result: { arguments: request.arguments, inputs: request.inputs } };
        return this.#end(id, { outcome: "ok" }, { jsonrpc: "2.0", id, result });
      }
      this.#tell(id, left);
      this.#step(id, request, left - 1);
    }, stepMs);
    this.#timers.set(id, timer);
  }

  #tell(id: string, left: number): void {
    const detail = this.#calls.get(id)!;
    const status: StatusView = { callId: id, atMs: Date.now(), text: `${left} steps to go` };
    const text = `step ${left}\n`;
    const before = detail.output[0]?.text ?? "";
    const output: OutputView[] = [{ stream: "stdout", text: before + text, isCut: false }];
    this.#calls.set(id, { ...detail, output, statuses: [...detail.statuses, status] });
    this.#emit("status", status);
    this.#emit("output", { callId: id, stream: "stdout", text });
  }

  #end(id: string, changes: Partial<CallView>, answer: CallDetail["answer"]): void {
    clearTimeout(this.#timers.get(id));
    const detail = this.#calls.get(id)!;
    const { number, receivedAtMs, tool, isOwn } = detail.call;
    const call = recordedCall(number, receivedAtMs, { id, tool, isOwn, ...changes });
    this.#calls.set(id, { ...detail, call, answer });
    this.#emit("call", call);
  }
}

function detailOf(call: CallView, request: NewCall | null): CallDetail {
  return {
    call,
    statuses: [],
    output: [],
    request: request && { arguments: request.arguments, inputs: request.inputs },
    answer: null,
    artifacts: [],
  };
}
