/**
 * A broker and a worker as containers that share a network which leads nowhere.
 */

/** For a command of the engine. */
export const commandTimeoutMs = 60_000;
/** Seconds for a call, and for a worker to be ready. */
const callSeconds = 20;

const calls = ["--env", "SAM_NAMESPACE=harness", "--env", "DEV_BROKER_HOST=127.0.0.1"];

/**
 * Runs a broker and a worker, which are removed after `use`. Returns what `use` returns.
 *
 * @param flags of the worker's container, after which its image comes
 * @param use takes the names and the functions of the containers
 */
export function withWorker(engine, image, flags, use) {
  const names = ["broker", "worker", "call"].map((part) => `${containerName(image)}-${part}`);
  const [brokerName, workerName, callName] = names;
  const beside = `--network=container:${brokerName}`;
  const start = (name, args) =>
    engine.mustRun(
      ["run", "--detach", "--name", name, ...engine.runFlags, ...args],
      commandTimeoutMs,
    );
  const invoke = (tool, args) => [
    ...["--entrypoint", "harness", image, "invoke", "--broker", "127.0.0.1"],
    ...["--timeout", String(callSeconds), "--tool", tool, "--args", JSON.stringify(args)],
  ];
  const removed = [workerName, callName, brokerName];
  try {
    start(brokerName, ["--network=none", "--entrypoint", "harness", image, "dev-broker"]);
    start(workerName, [beside, ...flags, ...calls, image]);
    waitForLog(engine, workerName, /"event":"worker.ready"/);
    return use({
      workerName,
      callName,
      /** Calls a tool and returns what `harness invoke` prints. */
      call: (tool, args) =>
        engine.mustRun(
          ["run", "--rm", beside, ...engine.runFlags, ...invoke(tool, args)],
          commandTimeoutMs,
        ),
      /** Starts a call in a container of this name. */
      startCall: (tool, args) => start(callName, [beside, ...invoke(tool, args)]),
    });
  } finally {
    // The broker has the network, so it goes last.
    for (const name of removed) engine.run(["rm", "--force", name], commandTimeoutMs);
  }
}

/** Begins the names of this process's containers of an image. */
export function containerName(image) {
  return `${image.replaceAll(/[^a-z\d-]/g, "-")}-${process.pid}`;
}

/** Waits until a container has logged such a line. Throws after 20 seconds, with its log. */
export function waitForLog(engine, name, line) {
  const deadlineMs = Date.now() + callSeconds * 1_000;
  for (;;) {
    const log = engine.mustRun(["logs", name], commandTimeoutMs);
    if (line.test(log)) return;
    if (Date.now() > deadlineMs) throw new Error(`${name} never logged ${line}:\n${log}`);
  }
}
