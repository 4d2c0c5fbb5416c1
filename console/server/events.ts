/** Reads an event stream (HTML Living Standard, 9.2.6), as far as the worker writes one. */

/** One event. */
export interface StreamEvent {
  readonly name: string;
  /** Its JSON. */
  readonly data: string;
}

/** The events of a stream of text until it ends. Rejects as the stream does. */
export async function* eventsOf(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<StreamEvent> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      const [first = "", second = ""] = event.split("\n");
      yield { name: first.replace(/^event: /, ""), data: second.replace(/^data: /, "") };
    }
  }
}
