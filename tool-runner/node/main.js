/**
 * The Node tool runner: `node main.js RUNNER_ARGS_FILE` runs one call. See tool-runner/PROTOCOL.md.
 *
 * What every call loads is kept small. A file takes 0.4 ms, so there are few; `import "node:fs"`
 * takes 3 ms, since it asks for every export, and `getBuiltinModule` nothing.
 */
import { Context } from "./context.js";
import { Failure, describe, failureOf, importFailure, printStack, warn } from "./errors.js";
import { errorDocument, parseCall, resultDocument, takeCall, writeResult } from "./protocol.js";
import { StatusPipe } from "./status-pipe.js";

/** @import { Child } from "./forks/runner.js" */
/** @import { Call } from "./protocol.js" */
/** @import { WakeChannel } from "./wake-channel.js" */

/**
 * A module, and the path that it was imported from.
 *
 * @typedef {{ file: string, exported: Record<string, unknown> }} Loaded
 */

// Taken before the tool is loaded, which may replace them by accident or for its tests.
const { process, setImmediate, setTimeout } = globalThis;
const { existsSync } = process.getBuiltinModule("node:fs");
const { defineProperty, entries, fromEntries, hasOwn } = Object;
const { execPath, execve, exit, off, prependListener, reallyExit } =
  /** @type {NodeJS.Process & { reallyExit(status: number): never }} */ (process);

const usage =
  "usage: main.js RUNNER_ARGS_FILE | main.js --warm MODULE_FILE CACHE_DIR" +
  " | main.js --park MODULE TOOLS_DIR RUNNER_ARGS_FILE" +
  " | main.js --template MODULE TOOLS_DIR RUNNER_ARGS_FILE";

/** What the tool leaves running may hold an answer that is already written for this long. */
const lingerSeconds = 2;

const gatewayKey = Symbol.for("secure-tool-runtime.gateway");

/** Exit status when there is no `result.json`, and stderr says why. */
const failed = 1;

/** @param {readonly string[]} argv */
function main(argv) {
  if (argv.length === 3 && argv[0] === "--warm") {
    const url = urlOf(String(argv[1]));
    void import("./warm.js").then(({ warm }) => warm(url, String(argv[2])));
    return;
  }
  if (argv.length === 4 && (argv[0] === "--park" || argv[0] === "--template")) {
    const [way, module = "", toolsDir = "", argsFile = ""] = argv;
    const load = async () => {
      const isProgram = module === "";
      const loaded = isProgram ? undefined : await importModule({ module, tools_dir: toolsDir });
      if (isProgram) await (await loadPrograms(toolsDir)).rehearse();
      return loaded;
    };
    /**
     * @type {(
     *   description: string,
     *   loaded: Loaded | undefined,
     *   channel: WakeChannel,
     *   child?: Child,
     * ) => void}
     */
    const onCall = (description, loaded, channel, child) =>
      answer(() => parseCall(description), loaded, channel, child);
    /** @param {string} description */
    const rehearse = (description) => Run.rehearse(parseCall(description));
    if (way === "--park")
      void import("./parked.js").then(({ park }) => park(load, onCall, rehearse));
    else
      void import("./forks/template.js").then(({ template }) =>
        template(load, argsFile, onCall, rehearse),
      );
    return;
  }
  if (argv.length !== 1) return fail(usage);
  answer(() => takeCall(String(argv[0])));
}

/**
 * Takes the call, and answers it.
 *
 * @param {() => Call} take
 * @param {Loaded} [loaded] a module that was imported ahead of the call
 * @param {WakeChannel} [channel] where the call has come by
 * @param {Child} [child] where this process is one of a template's
 */
function answer(take, loaded, channel, child) {
  let call;
  try {
    call = take();
  } catch (error) {
    return fail(`the runner arguments cannot be used: ${describe(error)}`);
  }
  const statuses = new StatusPipe(call.status_pipe);
  if (statuses.isAbandoned) {
    return fail("nobody reads the status pipe, so the worker is gone");
  }
  const run = new Run(call, statuses, loaded, channel, child);
  run.listen();
  // Where every copy of tool.js looks for it.
  defineProperty(globalThis, gatewayKey, {
    value:
      child?.gateway === undefined ? { ...call.gateway } : { ...call.gateway, fd: child.gateway },
  });
  void run.start();
}

/** @param {string} message */
function fail(message) {
  warn(message);
  process.exitCode = failed;
}

/** One call, from its description to result.json, however the tool ends. */
class Run {
  #call;
  #statuses;
  #loaded;
  #channel;
  /** Whether the answer went by the channel. */
  #isGiven = false;
  #context;
  /**
   * What happens now. `answering`: the answer is decided, and the tool's last statuses are on their
   * way.
   *
   * @type {"importing" | "running" | "answering" | "answered"}
   */
  #stage = "importing";
  #answer = "";
  #exitStatus = 0;
  #isIdle = false;
  #failureOf = failureOf;
  #exitAtRest;
  #exitNow;
  #giveWay;

  /**
   * @param {Call} call
   * @param {StatusPipe} statuses
   * @param {Loaded} [loaded]
   * @param {WakeChannel} [channel]
   * @param {Child} [child]
   */
  constructor(call, statuses, loaded, channel, child) {
    this.#exitAtRest = child?.exit ?? exitAtRest;
    this.#exitNow = child?.exit ?? endNow;
    this.#giveWay = child?.giveWay ?? (() => undefined);
    this.#call = call;
    this.#statuses = statuses;
    this.#loaded = loaded;
    this.#channel = channel;
    this.#context = new Context({
      userId: call.user_id,
      sessionId: call.session_id,
      appName: call.app_name,
      taskId: call.task_id,
      config: call.tool_config,
      artifacts: call.artifact_paths,
      filenames: fromEntries(
        entries(call.artifact_metadata).map(([param, { filename }]) => [param, filename]),
      ),
      outputDir: call.output_dir,
      onStatus: (text, details) => statuses.send(text, details),
      ...(call.deadline_ms === 0 ? {} : { deadlineMs: call.deadline_ms }),
      ...(call.traceparent === "" ? {} : { traceparent: call.traceparent }),
      ...(call.tracestate === "" ? {} : { tracestate: call.tracestate }),
      get signal() {
        return signalOfProcess();
      },
      get tools() {
        return toolsOfCall();
      },
    });
  }

  /**
   * Goes the way of a call of nothing, but for its end. Throws what the runner cannot work with.
   *
   * @param {Call} call
   */
  static async rehearse(call) {
    const loaded = {
      file: fileOf(call),
      exported: { [call.function]: () => ({ list: ["", 0, true] }) },
    };
    const statuses = new StatusPipe(call.status_pipe);
    const run = new Run(call, statuses, loaded);
    run.listen()();
    await run.#result();
    await statuses.flushed();
    statuses.close();
  }

  /** Listens for how it ends, before a module that was imported ahead. Returns what undoes it. */
  listen() {
    /** @type {readonly [name: string, listener: (given: any) => void][]} */
    const listeners = [
      ["uncaughtException", (error) => this.onUncaught(error)],
      ["beforeExit", () => this.onIdle()],
      ["exit", (code) => this.onExit(Number(code))],
    ];
    for (const [name, listener] of listeners)
      prependListener.call(process, /** @type {any} */ (name), listener);
    return () => {
      for (const [name, listener] of listeners) off.call(process, name, listener);
    };
  }

  async start() {
    await this.#answerWith(await this.#outcome());
  }

  /**
   * What nobody catches would end a Node process. It ends the call, unless the tool listens for
   * such errors itself.
   *
   * @param {unknown} error also the reason of a rejection that nobody handles
   */
  onUncaught(error) {
    if (process.listenerCount("uncaughtException") > 1) return;
    if (this.#isDecided) {
      printStack(error);
      exit.call(process, this.#exitStatus);
    }
    void this.#answerWith(this.#failed(error)).then(() => exit.call(process, this.#exitStatus));
  }

  /**
   * The event loop has run empty: the process ends, unless a listener of the tool's finds something
   * to do.
   */
  onIdle() {
    this.#isIdle = true;
    setImmediate(() => {
      this.#isIdle = false;
    }).unref();
  }

  /**
   * The process ends. The last moment to answer, without waiting for anything.
   *
   * @param {number} code
   */
  onExit(code) {
    if (this.#isDecided) return this.#deliver();
    const isImporting = this.#stage === "importing";
    if (this.#isIdle) {
      const text = `${this.#subject} never ends: it waits for a promise that nothing is left to settle`;
      this.#answerNow(
        isImporting
          ? importFailure(this.#call, "its top-level await never ends")
          : new Failure("EXECUTION_ERROR", text),
      );
    } else if (isImporting) {
      this.#answerNow(importFailure(this.#call, `it calls process.exit(${code})`));
    } else if ((code & 0xff) === 0) {
      this.#answerNow(
        new Failure("EXECUTION_ERROR", `${this.#subject} called process.exit(${code})`),
      );
    }
    // Any other status is the tool's own way to end its process.
  }

  get #subject() {
    return this.#call.program.language === undefined ? "Tool" : "Program";
  }

  get #isDecided() {
    return this.#stage === "answering" || this.#stage === "answered";
  }

  /** The answer to the call. Total. */
  async #outcome() {
    try {
      return await this.#result();
    } catch (thrown) {
      return this.#failed(thrown);
    }
  }

  /** The answer to a call that succeeds. Throws what the tool throws, and Failure. */
  async #result() {
    const tool = await this.#loadTool();
    if (this.#call.load_only) return resultDocument({}, [], this.#call);
    this.#stage = "running";
    if (this.#call.describe) {
      const { descriptionOf } = await import("./describe/tool.js");
      return resultDocument(await descriptionOf(tool, this.#call), [], this.#call);
    }
    const returned = await tool(this.#call.args, this.#context);
    return resultDocument(returned, this.#context.describedOutputs(), this.#call);
  }

  /** What the call runs. */
  async #loadTool() {
    const { program, args, tools_dir: toolsDir } = this.#call;
    const { language } = program;
    if (language === undefined) return loadTool(this.#call, this.#loaded);
    const programs = await loadPrograms(toolsDir);
    this.#failureOf = (thrown) => programs.failureOf(thrown);
    const { code, inputs = {} } = /** @type {{ code: string, inputs?: object }} */ (args);
    const { tools } = this.#context;
    return () => programs.run({ code, language, inputs, toolsDir, tools });
  }

  /**
   * The answer to a call that failed.
   *
   * @param {unknown} thrown
   */
  #failed(thrown) {
    if (Failure.is(thrown)) return errorDocument(thrown, this.#call);
    printStack(thrown);
    const isImporting = this.#stage === "importing";
    return errorDocument(
      isImporting ? importFailure(this.#call, describe(thrown)) : this.#failureOf(thrown),
      this.#call,
    );
  }

  /** @param {string} answer */
  async #answerWith(answer) {
    if (this.#isDecided) return;
    this.#stage = "answering";
    this.#answer = answer;
    await this.#statuses.flushed();
    this.#deliver();
    setTimeout(() => {
      warn(`ended what was still running ${lingerSeconds} s after the tool`);
      this.#end();
    }, lingerSeconds * 1_000).unref();
  }

  /** @param {Failure} failure */
  #answerNow(failure) {
    this.#answer = errorDocument(failure, this.#call);
    this.#deliver();
  }

  #deliver() {
    if (this.#stage === "answered") return;
    this.#stage = "answered";
    try {
      this.#isGiven = this.#channel?.give(this.#answer) ?? false;
      if (!this.#isGiven) writeResult(this.#answer, this.#call);
    } catch (error) {
      warn(`result.json cannot be written: ${describe(error)}`);
      this.#exitStatus = failed;
    }
    process.exitCode = this.#exitStatus;
    // Whatever status the process is about to end with: the answer is there.
    Reflect.set(process, "reallyExit", () => this.#end());
    process.on("exit", () => this.#end());
  }

  #end() {
    if (this.#isGiven) {
      this.#giveWay();
      this.#channel?.finish();
    }
    if (this.#isIdle) this.#exitAtRest(this.#exitStatus);
    this.#exitNow(this.#exitStatus);
  }
}

/**
 * The function that a call names.
 *
 * @param {Call} call
 * @param {Loaded} [loaded] a module that was imported already
 * @returns {Promise<Function>}
 * @throws {Failure} IMPORT_ERROR, TOOL_NOT_FOUND
 */
async function loadTool(call, loaded) {
  const file = fileOf(call);
  let tool;
  try {
    const { exported } = loaded?.file === file ? loaded : await importModule(call);
    tool = exportOf(exported, call.function);
  } catch (thrown) {
    printStack(thrown);
    const { importReasonOf } = await import("./import-reason.js");
    throw importFailure(call, importReasonOf(thrown, { file, url: urlOf(file) }));
  }
  if (typeof tool === "function") return tool;
  throw new Failure("TOOL_NOT_FOUND", `Module "${call.module}" has no function "${call.function}"`);
}

/**
 * Imports a tool's module, which runs it: it may do anything.
 *
 * @param {Pick<Call, "module" | "tools_dir">} call
 * @returns {Promise<Loaded>}
 */
async function importModule(call) {
  await provideOwnModule(call.tools_dir);
  const file = fileOf(call);
  return { file, exported: await import(urlOf(file)) };
}

/** @param {string} toolsDir */
async function provideOwnModule(toolsDir) {
  if (existsSync(`${toolsDir}/../node_modules/secure-tool-runtime`)) return;
  (await import("./own-module.js")).provideOwnModule();
}

/**
 * What runs programs, in place of a tool's module.
 *
 * @param {string} toolsDir
 */
async function loadPrograms(toolsDir) {
  await provideOwnModule(toolsDir);
  return (await import("./programs/program.js")).programs;
}

/** @param {Pick<Call, "module" | "tools_dir">} call */
function fileOf({ module, tools_dir: toolsDir }) {
  return `${toolsDir}/${module}`;
}

/** @param {string} file absolute path */
function urlOf(file) {
  return `file://${file.split("/").map(encodeURIComponent).join("/")}`;
}

/**
 * @param {Record<string, unknown>} exported
 * @param {string} name
 */
function exportOf(exported, name) {
  if (hasOwn(exported, name)) return exported[name];
  // Of a CommonJS module, Node knows only those names that can be read off its text.
  const all = /** @type {Record<string, unknown>} */ (exported["module.exports"] ?? {});
  return hasOwn(all, name) ? all[name] : undefined;
}

/** Aborts at SIGTERM, which ends the process until a tool has asked for this signal. */
function signalOfProcess() {
  const controller = new AbortController();
  process.on("SIGTERM", () => controller.abort());
  return controller.signal;
}

/** What tools import as `tools`. A tool that does not use it does not wait for it. */
function toolsOfCall() {
  const { createRequire } = process.getBuiltinModule("node:module");
  const loaded = /** @type {typeof import("./tool.js")} */ (
    createRequire(import.meta.url)("./tool.js")
  );
  return loaded.tools;
}

/**
 * Ends the process when nothing is running in it.
 *
 * @param {number} status
 */
function exitAtRest(status) {
  reallyExit.call(process, status);
}

/**
 * Ends the process while something may still be running in it.
 *
 * @param {number} status
 */
function endNow(status) {
  try {
    // Node waits for its thread pool before it exits, be it for a host name that takes its time.
    // Another program in its place waits for nothing.
    execve?.(execPath, [execPath, "--eval", `process.exitCode = ${status}`], {});
  } finally {
    reallyExit.call(process, status);
  }
}

// Taken out: the tool finds no arguments of the runner's in `process.argv`.
main(process.argv.splice(2));
