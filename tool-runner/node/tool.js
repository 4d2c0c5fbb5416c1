export class ToolError extends Error {}
