/**
 * Paths of runners and tools inside every sandbox. All are read-only.
 */
export const insidePaths = {
  /** The tool runner. */
  runner: "/sandbox/runner",
  /** A language's interpreter, where it does not lie in /usr. */
  interpreter: "/sandbox/interpreter",
  /** The operator's Python tools. */
  pythonTools: "/tools/python",
  /** The operator's Node tools. */
  nodeTools: "/tools/node",
  /** The operator's executables. */
  executables: "/tools/executable",
  /** The modules of the tool runner that Node tools import. */
  nodeModule: "/tools/node_modules/secure-tool-runtime",
  /** What the Node runner reads source with, to describe a tool. */
  nodeParser: "/sandbox/node_modules/@babel/parser",
  /** The packages of a tool's own: see Installation. */
  installation: "/tools/environment",
  /** The virtual environment of Python tools with packages of their own. */
  pythonEnvironment: "/sandbox/python",
  /** The packages of a Node tool's own, behind every directory that its files lie in. */
  nodePackages: "/node_modules",
  /** Compiled code of a Node tool's modules. */
  compileCache: "/sandbox/compile-cache",
} as const;
