/**
 * A process that serves a scripted backend. Its argument is a JSON of options; its output are
 * lines: the port, then what happens to executions.
 */
import { serveRuntime } from "../../../worker/runtime/service/server.ts";
import { scriptedBackend } from "./scripted-backend.ts";

const options = JSON.parse(process.argv[2] ?? "{}") as object;
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const service = await serveRuntime({
  backend: scriptedBackend((event) => say(event)),
  port: 0,
  ...options,
});
say(`port ${service.port}`);
process.on("SIGTERM", () => void service[Symbol.asyncDispose]().then(() => say("closed")));
