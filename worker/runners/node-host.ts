/**
 * The Node program of tools, as the host has it.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { z } from "zod";
import { SandboxError } from "../sandbox/sandbox.ts";

const run = promisify(execFile);

/** Milliseconds the interpreter may take to answer a question about itself. */
const questionTimeoutMs = 30_000;
/** The first version that runs TypeScript as it is and starts the runner's modules. */
const leastMajor = 24;

const nodeFacts = z.object({ version: z.string(), executable: z.string() });

/** Version and real path of a Node program. */
export type NodeFacts = z.infer<typeof nodeFacts>;

const aboutItself =
  "JSON.stringify({ version: process.versions.node, executable: process.execPath })";

/** Asks a Node program who it is. Throws SandboxError, also for a version that is too old. */
export async function askNode(nodeBin: string): Promise<NodeFacts> {
  const { execPath, versions } = process;
  // Saves a process: usually the tools' program is the worker's own.
  const isOwn = nodeBin === execPath;
  const facts = isOwn ? { version: versions.node, executable: execPath } : await ask(nodeBin);
  if (Number.parseInt(facts.version) >= leastMajor) return facts;
  throw new SandboxError(
    `${nodeBin} is Node ${facts.version}; tools need Node ${leastMajor} or later`,
    { setting: "nodeBin" },
  );
}

async function ask(nodeBin: string): Promise<NodeFacts> {
  return await run(nodeBin, ["--print", aboutItself], {
    env: {},
    cwd: "/",
    timeout: questionTimeoutMs,
  })
    .then(({ stdout }) => nodeFacts.parse(JSON.parse(stdout)))
    .catch((error: unknown) => {
      throw new SandboxError(`cannot use ${nodeBin} as the Node program`, {
        cause: error,
        setting: "nodeBin",
      });
    });
}
