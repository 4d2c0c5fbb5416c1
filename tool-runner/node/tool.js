/**
 * What a tool imports as `secure-tool-runtime/tool`. The types and their documentation are in
 * tool.d.ts.
 */
export { ToolError, createToolContext } from "./context.js";
