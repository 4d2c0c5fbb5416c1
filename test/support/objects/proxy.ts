/**
 * A proxy before a server of objects, which lets a test decide about each request.
 */
import { once } from "node:events";
import { createServer, request as send } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/**
 * What happens to a request: it goes on, or its answer never comes or is cut off, or it is lost, or
 * denied.
 */
export type Passage = "forward" | "withhold answer" | "cut answer" | "lose" | "deny";

/** A request by what a proxy sees of it. */
export interface SeenRequest {
  readonly method: string;
  readonly url: string;
}

/** Starts a proxy until the test is over. Its URL. */
export async function startProxy(
  target: string,
  decide: (request: SeenRequest) => Passage,
): Promise<string> {
  const proxy = createServer((incoming, response) => {
    const { method = "", url = "", headers } = incoming;
    const passage = decide({ method, url });
    if (passage === "lose") return void incoming.resume();
    if (passage === "deny") {
      incoming.resume();
      response.writeHead(403).end();
      return;
    }
    const outgoing = send(new URL(url, target), { method, headers }, (answer) => {
      if (passage === "withhold answer") return void answer.resume();
      if (passage === "cut answer")
        return void answer.resume().once("end", () => response.destroy());
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    // Of a connection that breaks there is nobody to tell.
    outgoing.on("error", () => response.destroy());
    incoming.pipe(outgoing);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  onTestFinished(() => {
    proxy.close();
    proxy.closeAllConnections();
  });
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}
