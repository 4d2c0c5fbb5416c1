/**
 * The worker as the first process of a container: what it does when tools leave processes, and when
 * it is stopped.
 */
import { commandTimeoutMs, waitForLog, withWorker } from "./worker.mjs";

/** What a sandbox may take to be gone after its answer. */
const endingMs = 5_000;
/** Seconds that a worker has to stop, as docs/containers.md has it. */
const stopSeconds = 60;

/** Begins the program of the process by which the worker opens sockets in sandboxes. */
const lasting = "The door:";

const tools = "/opt/str/examples/tools";
const worker = [
  ...["--env", `MANIFEST_PATH=${tools}/manifest.yaml`],
  ...["--env", `TOOLS_PYTHON_DIR=${tools}/python`, "--env", `TOOLS_NODE_DIR=${tools}/node`],
  // Sandboxes that wait for calls are no processes that were left.
  ...["--env", "WARM_MAX_MEMORY_MB=0"],
];

/** Leaves a process that has left its session, and one that nobody waits for. */
const leavesProcesses = `
import os, time
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
if os.fork() == 0:
    os._exit(0)`;

/**
 * Runs a worker and calls it. Returns what is wrong, a line each.
 *
 * @param flags of the worker's container
 */
export function serviceProblems(engine, image, flags) {
  return withWorker(engine, image, [...flags, ...worker], (containers) => {
    const { workerName, callName, call, startCall } = containers;
    call("execute_python", { code: leavesProcesses });
    const left = leftProcesses(engine, workerName);

    startCall("count_slowly", { to: 5, pause_seconds: 0.5 });
    waitForLog(engine, workerName, /"tool":"count_slowly".*"event":"tool.started"/);
    engine.mustRun(["stop", "-t", String(stopSeconds), workerName], commandTimeoutMs);
    return [...left, ...endingProblems(engine, workerName, callName)];
  });
}

/** Zombies, and processes of sandboxes, that stay. */
function leftProcesses(engine, name) {
  const deadlineMs = Date.now() + endingMs;
  for (;;) {
    const left = strayProcesses(engine, name);
    if (left.length === 0 || Date.now() > deadlineMs) {
      return left.map((process) => `a process was left: ${process}`);
    }
  }
}

function strayProcesses(engine, name) {
  // What ends meanwhile is not there any more.
  const each = `echo "$(cat $p/stat) $(tr '\\0' ' ' < $p/cmdline)"`;
  const look = `for p in /proc/[0-9]*; do ${each}; done 2> /dev/null; true`;
  const lines = engine.mustRun(["exec", name, "sh", "-c", look], commandTimeoutMs).split("\n");
  return lines
    .filter((line) => !line.includes(lasting))
    .flatMap((line) => /^\d+ \((bwrap|python3)\)|^\d+ \(.*\) (?=Z )/.exec(line)?.[0] ?? []);
}

function endingProblems(engine, workerName, callName) {
  const called = engine.mustRun(["wait", callName], commandTimeoutMs).trim();
  const stopped = engine.mustRun(["wait", workerName], commandTimeoutMs).trim();
  const output = engine.mustRun(["logs", workerName], commandTimeoutMs);
  return [
    ...(called === "0"
      ? []
      : [`a call that ran while the worker was stopped ended with ${called}`]),
    ...(stopped === "0" ? [] : [`the worker was stopped and ended with ${stopped}`]),
    ...(output.includes('"event":"worker.drained"')
      ? []
      : ["the worker was stopped and did not drain"]),
  ];
}
