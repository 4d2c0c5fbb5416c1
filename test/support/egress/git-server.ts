/**
 * A server of git repositories over HTTPS: git-http-backend(1) behind a TLS server of the test.
 */
import { execFile, spawn } from "node:child_process";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";

const run = promisify(execFile);
const emptyLine = "\r\n\r\n";

/** Makes a repository with one commit and one file, `README`, which others can read. */
export async function createRepository(directory: string, content: string): Promise<void> {
  const script = `umask 022 && git init -q "$0" && cd "$0" && cat > README && git add . &&
    git -c user.name=test -c user.email=test@example.com commit -qm first`;
  const running = run("/bin/sh", ["-c", script, directory]);
  running.child.stdin?.end(content);
  await running;
}

/**
 * The port of a server of the repositories below a directory; it ends with the test.
 *
 * @param authorization header that each request needs; who has it may push
 */
export async function serveRepositories(
  directory: string,
  files: { readonly cert: Buffer; readonly key: Buffer },
  authorization?: string,
): Promise<number> {
  const { stdout } = await run("git", ["--exec-path"]);
  const backend = join(stdout.trim(), "git-http-backend");
  const server = createServer(files, (request, response) => {
    if (request.headers.authorization !== authorization)
      return void response.writeHead(401, { "WWW-Authenticate": "Basic" }).end();
    const child = spawn(backend, { env: variablesOf(request, directory), timeout: 60_000 });
    request.pipe(child.stdin);
    child.stdin.on("error", () => undefined);
    void child.stdout.toArray().then((chunks: Buffer[]) => answer(response, Buffer.concat(chunks)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Of the Common Gateway Interface, RFC 3875, section 4.1. */
function variablesOf(request: IncomingMessage, directory: string): Record<string, string> {
  const { pathname, search } = new URL(request.url ?? "/", "https://server");
  const { headers, method = "GET" } = request;
  return {
    PATH: "/usr/bin:/bin",
    GIT_PROJECT_ROOT: directory,
    GIT_HTTP_EXPORT_ALL: "1",
    GIT_PROTOCOL: String(headers["git-protocol"] ?? ""),
    GIT_CONFIG_COUNT: "2",
    GIT_CONFIG_KEY_0: "safe.directory",
    GIT_CONFIG_VALUE_0: "*",
    GIT_CONFIG_KEY_1: "http.receivepack",
    GIT_CONFIG_VALUE_1: String(headers.authorization !== undefined),
    REQUEST_METHOD: method,
    PATH_INFO: pathname,
    QUERY_STRING: search.slice(1),
    CONTENT_TYPE: headers["content-type"] ?? "",
    HTTP_CONTENT_ENCODING: headers["content-encoding"] ?? "",
  };
}

/** Headers and body, as the backend writes them. */
function answer(response: ServerResponse, output: Buffer): void {
  const end = output.indexOf(emptyLine);
  for (const line of output.subarray(0, Math.max(end, 0)).toString().split("\r\n")) {
    const [name = "", value = ""] = line.split(/: */);
    if (name === "Status") response.statusCode = Number.parseInt(value);
    else if (name !== "") response.setHeader(name, value);
  }
  response.end(output.subarray(end + emptyLine.length));
}
