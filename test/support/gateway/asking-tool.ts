/**
 * Python source of a tool that calls the tool that it is told, and tells what came of it.
 */
export const askingTool = `
async def asks(ctx, tool, args=None):
    try:
        result = await ctx.tools.call(tool, args or {})
    except Exception as error:
        return {"code": error.code, "retryable": error.retryable, "message": str(error)}
    return {"result": dict(result), "artifacts": [each["filename"] for each in result.artifacts]}
`;
