/**
 * The contract of backends, kept over a connection.
 */
import { afterAll, beforeAll, describe, test } from "vitest";
import type { RuntimeBackend } from "../../../../worker/runtime/api/backend.ts";
import { openRemote } from "../../../../worker/runtime/service/remote.ts";
import { serveRuntime } from "../../../../worker/runtime/service/server.ts";
import { backendContract } from "../../../../worker/runtime/testing.ts";
import { openBubblewrap } from "../../../../worker/runtime.ts";

const languages = ["python", "javascript"];
describe.each(languages)(
  "a remote backend over bubblewrap, in %s",
  { tags: "full" },
  (language) => {
    const parts = new AsyncDisposableStack();
    let shared: RuntimeBackend;
    beforeAll(async () => {
      const backend = parts.use(await openBubblewrap());
      const { port } = parts.use(await serveRuntime({ backend, port: 0 }));
      shared = parts.use(await openRemote({ url: `ws://127.0.0.1:${port}` }));
    });
    afterAll(() => parts.disposeAsync());

    // One for all checks: each opens and closes a view of it.
    const newBackend = (): RuntimeBackend => ({
      ...shared,
      [Symbol.asyncDispose]: () => Promise.resolve(),
    });
    for (const { name, run } of backendContract({ newBackend, expectedKind: "remote", language }))
      test(name, run);
  },
);
