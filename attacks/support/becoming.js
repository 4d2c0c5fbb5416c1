/**
 * Node tools that become the functions of a Python module beside them: so programs attack from
 * sandboxes of Node, too.
 */
import { spawnSync } from "node:child_process";
import { dirname } from "node:path";

const python = "/usr/bin/python3";
const toolsDir = dirname(import.meta.dirname);
const answerMark = "ANSWER ";

/** Calls a function of a module, and leaves its answer in a result.json, or prints it. */
const program = `
import asyncio, inspect, json, os, sys
call = json.loads(sys.argv[1])
sys.path.insert(0, call["tools_dir"])
class Context:
    def send_status(self, text):
        with open("/sandbox/work/status.pipe", "w") as pipe:
            pipe.write(json.dumps({"status": text}) + chr(10))
async def waited(answer):
    return await answer
result_dir = os.getcwd()
try:
    function = getattr(__import__(call["module"]), call["name"])
    if "ctx" in inspect.signature(function).parameters:
        call["args"]["ctx"] = Context()
    result = function(**call["args"])
    answer = {"result": asyncio.run(waited(result)) if inspect.isawaitable(result) else result}
except Exception as error:
    answer = {"error": f"Tool raised {type(error).__name__}: {error}"}
if call["prints"]:
    print("${answerMark}" + json.dumps(answer))
else:
    with open(result_dir + "/result.tmp", "w") as file:
        json.dump(answer, file)
    os.rename(result_dir + "/result.tmp", result_dir + "/result.json")
`;

/**
 * A tool that becomes this function.
 *
 * @param {string} module
 * @param {string} name
 */
export function becomes(module, name) {
  return (/** @type {object} */ args) => {
    const argv = argvOf({ module, name, args, prints: false });
    process.execve?.(python, [python, ...argv], { ...process.env, PYTHONPATH: toolsDir });
  };
}

/**
 * A tool with the answer of this function now, which runs while the tool is imported.
 *
 * @param {string} module
 */
export function answersAhead(module) {
  const argv = argvOf({ module, name: "attack", args: { target: null }, prints: true });
  const { stdout } = spawnSync(python, argv, { encoding: "utf8" });
  const { result, error } = JSON.parse(
    stdout.slice(stdout.indexOf(answerMark) + answerMark.length),
  );
  return () => {
    if (error !== undefined) throw new Error(error);
    return result;
  };
}

/** @param {{ module: string, name: string, args: object, prints: boolean }} call */
function argvOf(call) {
  return ["-IBc", program, JSON.stringify({ ...call, tools_dir: toolsDir })];
}
