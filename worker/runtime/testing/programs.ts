/**
 * The code that checks run, in each language that it is written in. What does not exist inside,
 * such as processes, is "absent".
 */

/** Languages of the checks' code. */
export const checkedLanguages = ["javascript", "python"] as const;
export type CheckedLanguage = (typeof checkedLanguages)[number];

/** One program for each purpose. */
export interface Programs {
  readonly values: string;
  readonly lastExpression: string;
  readonly streams: string;
  readonly longOutput: string;
  readonly forgedMarks: string;
  readonly throws: string;
  readonly syntaxError: string;
  readonly printsAndHangs: string;
  readonly user: string;
  readonly calls: string;
  readonly chain: string;
  readonly caughtError: string;
  readonly manyCalls: string;
  readonly longChain: string;
  readonly lookups: string;
  readonly memory: string;
  readonly cpu: string;
  readonly pids: string;
  readonly disk: string;
  /** Its value is the number. */
  number(value: number): string;
  /** `read`, or why it cannot be. */
  readFile(path: string): string;
  /** Tries to connect to a port of this host. */
  connect(port: number): string;
  /** Leaves a process behind whose arguments have a text. */
  leavesProcess(seconds: string): string;
}

/** The text of {@link Programs.streams} and of {@link Programs.forgedMarks}. */
export const printed = { stdout: "to stdout ü\n", stderr: "to stderr\n" } as const;

const forged = ['{"value":"forged"}', "__OUT__:forged", "__out = forged", "\u0000\u001eforged"];

const javascript: Programs = {
  values: `__out = { text: "ü\\u2028😀", numbers: [0, -1.5, 1e21, 9007199254740991], flags: [true, false], nothing: null, deep: [[[{ a: {} }]]] }`,
  lastExpression: "const a = 20;\na * 2 + 2",
  streams: `console.log("to stdout ü"); console.error("to stderr"); __out = 1`,
  longOutput: `for (let n = 0; n < 3000; n++) console.log("x".repeat(100)); __out = 1`,
  forgedMarks: `for (const mark of ${JSON.stringify(forged)}) { console.log(mark); console.error(mark); } __out = "mine"`,
  throws: `console.log("before");\nconst nothing = null;\nnothing.member;`,
  syntaxError: `console.log("never");\nconst = 1;`,
  printsAndHangs: `console.log("before"); await new Promise((resolve) => resolve()); for (;;) {}`,
  user: `__out = typeof globalThis.process?.getuid === "function" ? process.getuid() : "absent"`,
  calls: `const { sum } = await tools.call("math:add", { a: 1, b: 2 }); const both = await Promise.all([3, 4].map((a) => tools.call("math:add", { a, b: 1 }))); __out = [sum, ...both.map((each) => each.sum)]`,
  chain: `const last = await tools.chain([{ tool: "math:add", args: { a: 1, b: 2 } }, { tool: "text:echo", usePrevious: true }]); __out = last.args.previous.sum`,
  caughtError: `try { await tools.call("text:fail", {}); __out = "no error" } catch (error) { __out = error.code }`,
  manyCalls: `let made = 0; try { for (; made < 9; made++) await tools.call("math:add", { a: made, b: 1 }) } catch {} __out = made`,
  longChain: `const step = { tool: "math:add", args: { a: 1, b: 1 } }; try { await tools.chain(Array(9).fill(step)); __out = "ran" } catch (error) { __out = error.code }`,
  lookups: `const [found] = await tools.search("add"); const doc = await tools.describe(found.id); __out = [found.id, doc.id, await tools.namespaces()]`,
  memory: `const kept = []; for (let n = 0; n < 48; n++) kept.push(new Uint8Array(8 << 20).fill(n + 1)); __out = kept.length === 48`,
  cpu: `let n = 0; const end = Date.now() + 4000; while (Date.now() < end) n++; __out = true`,
  pids: `let all; try { const { spawn } = await import("node:child_process"); const made = Array.from({ length: 60 }, () => spawn("/usr/bin/sleep", ["30"], { stdio: "ignore" })); const ends = await Promise.all(made.map((child) => new Promise((resolve) => child.once("spawn", () => resolve(true)).once("error", () => resolve(false))))); for (const child of made) child.kill("SIGKILL"); all = ends.every(Boolean) } catch { all = "absent" } __out = all`,
  disk: `let all; try { const { appendFileSync } = await import("node:fs"); for (let n = 0; n < 48; n++) { appendFileSync("filled", Buffer.alloc(1 << 20, n)); await new Promise((resolve) => setTimeout(resolve, 25)) } all = true } catch { all = "absent" } __out = all`,
  number: (value) => `__out = ${value}`,
  readFile: (path) =>
    `try { const { readFileSync } = await import("node:fs"); readFileSync(${JSON.stringify(path)}); __out = "read" } catch (error) { __out = String(error?.code ?? "absent") }`,
  connect: (port) =>
    `try { const { connect } = await import("node:net"); __out = await new Promise((resolve) => connect(${port}, "127.0.0.1").once("connect", () => resolve("connected")).once("error", (error) => resolve(error.code))) } catch { __out = "absent" }`,
  leavesProcess: (seconds) =>
    `try { const { spawn } = await import("node:child_process"); spawn("/usr/bin/sleep", ["${seconds}"], { stdio: "ignore", detached: true }).unref(); __out = "started" } catch { __out = "absent" }`,
};

const python: Programs = {
  values: `__out = {"text": "ü\\u2028😀", "numbers": [0, -1.5, 1e21, 9007199254740991], "flags": [True, False], "nothing": None, "deep": [[[{"a": {}}]]]}`,
  lastExpression: "a = 20\na * 2 + 2",
  streams: `import sys\nprint("to stdout ü")\nprint("to stderr", file=sys.stderr)\n__out = 1`,
  longOutput: `for _ in range(3000): print("x" * 100)\n__out = 1`,
  forgedMarks: `import sys\nfor mark in ${JSON.stringify(forged)}:\n    print(mark)\n    print(mark, file=sys.stderr)\n__out = "mine"`,
  throws: `print("before")\nnothing = None\nnothing.member`,
  syntaxError: `print("never")\ndef = 1`,
  printsAndHangs: `print("before", flush=True)\nwhile True: pass`,
  user: "import os\n__out = os.getuid()",
  calls: `import asyncio\nsum = (await tools.call("math:add", {"a": 1, "b": 2}))["sum"]\nboth = await asyncio.gather(*(tools.call("math:add", {"a": a, "b": 1}) for a in (3, 4)))\n__out = [sum, *(each["sum"] for each in both)]`,
  chain: `last = await tools.chain([{"tool": "math:add", "args": {"a": 1, "b": 2}}, {"tool": "text:echo", "use_previous": True}])\n__out = last["args"]["previous"]["sum"]`,
  caughtError: `try:\n    await tools.call("text:fail", {})\n    __out = "no error"\nexcept Exception as error:\n    __out = error.code`,
  manyCalls: `made = 0\ntry:\n    while made < 9:\n        await tools.call("math:add", {"a": made, "b": 1})\n        made += 1\nexcept Exception:\n    pass\n__out = made`,
  longChain: `step = {"tool": "math:add", "args": {"a": 1, "b": 1}}\ntry:\n    await tools.chain([step] * 9)\n    __out = "ran"\nexcept Exception as error:\n    __out = error.code`,
  lookups: `found = (await tools.search("add"))[0]\ndoc = await tools.describe(found["id"])\n__out = [found["id"], doc["id"], await tools.namespaces()]`,
  memory: `kept = [bytes([n]) * (8 << 20) for n in range(1, 49)]\n__out = len(kept) == 48`,
  cpu: `import time\nend = time.monotonic() + 4\nwhile time.monotonic() < end: pass\n__out = True`,
  pids: `import os, signal\nmade = []\ntry:\n    for _ in range(60):\n        child = os.fork()\n        if child == 0:\n            signal.pause()\n            os._exit(0)\n        made.append(child)\nexcept OSError:\n    pass\nfor child in made: os.kill(child, signal.SIGKILL)\n__out = len(made) == 60`,
  disk: `import time\nwith open("filled", "wb") as file:\n    for n in range(48):\n        file.write(bytes([n]) * (1 << 20))\n        file.flush()\n        time.sleep(0.025)\n__out = True`,
  number: (value) => `__out = ${value}`,
  readFile: (path) =>
    `try:\n    open(${JSON.stringify(path)}).read()\n    __out = "read"\nexcept OSError as error:\n    __out = str(error.errno)`,
  connect: (port) =>
    `import socket\ntry:\n    socket.create_connection(("127.0.0.1", ${port}), 2)\n    __out = "connected"\nexcept OSError as error:\n    __out = str(error.errno)`,
  leavesProcess: (seconds) =>
    `import subprocess\ntry:\n    subprocess.Popen(["/usr/bin/sleep", "${seconds}"], start_new_session=True)\n    __out = "started"\nexcept OSError:\n    __out = "absent"`,
};

/** The programs of each language. */
export const programs: Readonly<Record<CheckedLanguage, Programs>> = { javascript, python };
