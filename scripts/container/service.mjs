/**
 * The worker as the first process of a container: what it does when tools leave processes, and when
 * it is stopped.
 */

const commandTimeoutMs = 60_000;
/** Seconds for a call. */
const callSeconds = 20;
/** What a sandbox may take to be gone after its answer. */
const endingMs = 5_000;
/** Seconds that a worker has to stop, as docs/containers.md has it. */
const stopSeconds = 60;

/** Begins the program of the process by which the worker opens sockets in sandboxes. */
const lasting = "The door:";

const tools = "/opt/str/examples/tools";
const worker = [
  ...["--env", "SAM_NAMESPACE=harness", "--env", "DEV_BROKER_HOST=127.0.0.1"],
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
 * Runs a broker and a worker as containers that share a network, and calls. Returns what is wrong,
 * a line each.
 *
 * @param flags of the worker's container
 */
export function serviceProblems(engine, image, flags) {
  const names = ["broker", "worker", "call"].map((part) => `${image}-${process.pid}-${part}`);
  const [brokerName, workerName, callName] = names;
  const start = (name, args) =>
    engine.mustRun(
      ["run", "--detach", "--name", name, ...engine.runFlags, ...args],
      commandTimeoutMs,
    );
  const beside = `--network=container:${brokerName}`;
  const harness = ["--entrypoint", "harness", image];
  const call = ["invoke", "--broker", "127.0.0.1", "--timeout", String(callSeconds)];
  const code = JSON.stringify({ code: leavesProcesses });
  const slowly = JSON.stringify({ to: 5, pause_seconds: 0.5 });
  try {
    start(brokerName, ["--network=none", ...harness, "dev-broker"]);
    start(workerName, [beside, ...flags, ...worker, image]);
    waitForLog(engine, workerName, /"event":"worker.ready"/);
    const leaving = [...call, "--tool", "execute_python", "--args", code];
    engine.mustRun(
      ["run", "--rm", beside, ...engine.runFlags, ...harness, ...leaving],
      commandTimeoutMs,
    );
    const left = leftProcesses(engine, workerName);

    const counting = [...call, "--tool", "count_slowly", "--args", slowly];
    start(callName, [beside, ...harness, ...counting]);
    waitForLog(engine, workerName, /"tool":"count_slowly".*"event":"tool.started"/);
    engine.mustRun(["stop", "-t", String(stopSeconds), workerName], commandTimeoutMs);
    return [...left, ...endingProblems(engine, workerName, callName)];
  } finally {
    // The broker has the network, so it goes last.
    for (const name of names.toReversed()) engine.run(["rm", "--force", name], commandTimeoutMs);
  }
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

function waitForLog(engine, name, line) {
  const deadlineMs = Date.now() + callSeconds * 1_000;
  while (!line.test(engine.mustRun(["logs", name], commandTimeoutMs))) {
    if (Date.now() > deadlineMs) throw new Error(`${name} never logged ${line}`);
  }
}
