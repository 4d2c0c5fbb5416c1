/**
 * The floor of every benchmark: a program started and ended by a process that is small.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** Starts /bin/true on demand. The caller disposes it. */
export interface Floor extends AsyncDisposable {
  /**
   * Starts the program and waits for its end. The milliseconds that this took, without the way to
   * who does it.
   */
  run(): Promise<number>;
}

/** Starts `lanes` small processes, so that as many programs can be started at once. */
export async function openFloor(lanes: number): Promise<Floor> {
  const free = Array.from({ length: lanes }, openLane);
  const all = [...free];
  return {
    async run() {
      const lane = free.pop();
      if (lane === undefined) throw new Error("more programs at once than lanes");
      const elapsedMs = await lane.run();
      free.push(lane);
      return elapsedMs;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(all.map((lane) => lane[Symbol.asyncDispose]()));
    },
  };
}

function openLane(): Floor {
  const child = spawn(
    "/usr/bin/python3",
    ["-I", fileURLToPath(new URL("floor.py", import.meta.url))],
    {
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  const answers = createInterface({ input: child.stdout });
  return {
    async run() {
      const answered = once(answers, "line");
      child.stdin.write("\n");
      const [nanoseconds] = (await answered) as string[];
      return Number(nanoseconds) / 1e6;
    },
    async [Symbol.asyncDispose]() {
      const closed = once(child, "close");
      child.stdin.end();
      await closed;
    },
  };
}
