/**
 * A tool that fights the end of its cancelled call.
 */
import { expect, test, vi } from "vitest";
import { patience } from "../support/patience.ts";
import { ToolRuns, announcingTool } from "../support/workers/announcing-tool.ts";
import { startRig } from "../support/workers/rig.ts";
import { awaitedLater } from "../support/workers/awaited-later.ts";

/** Its processes share a connection, which ends with the last of them. */
const resisting = `
import os
import signal
import socket
import time


def resists(ctx, port, name):
    def fork(*_):
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                while True:
                    time.sleep(0.1)

    ctx.on_cancel(lambda: time.sleep(600))
    with socket.create_connection(("127.0.0.1", port)) as test:
        test.sendall(name.encode() + b"\\n")
        signal.signal(signal.SIGTERM, fork)
        fork()
        ctx.send_status("ready")
        while True:
            time.sleep(0.1)
`;

test(
  "a cancelled tool that forks at SIGTERM is gone with all its processes, and no other call is",
  { tags: ["full", "promise-R11"] },
  async () => {
    const runs = await ToolRuns.listen();
    await using rig = await startRig({
      tools: {
        resists: { module: "resisting", function: "resists", network: "host" },
        announces: { module: "announcing", function: "announces", network: "host" },
      },
      files: { "resisting.py": resisting, [announcingTool.file]: announcingTool.source },
    });
    const victim = rig.call("announces", { port: runs.port, name: "victim" });
    const cancelling = new AbortController();
    const hostile = awaitedLater(
      rig.agent.call(
        { tool: "resists", args: { port: runs.port, name: "hostile" }, timeoutSeconds: 60 },
        { cancel: cancelling.signal, onStatus: () => cancelling.abort() },
      ),
    );
    await runs.haveBegun("victim", "hostile");
    expect(await hostile).toMatchObject({ kind: "error", code: "CANCELLED" });
    await vi.waitFor(() => expect(runs.alive).toBe(1), patience);
    runs.finish("victim");
    expect(await victim).toMatchObject({ kind: "success", toolResult: { told: "done" } });
  },
);
