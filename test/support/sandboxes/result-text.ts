/**
 * What a runner answered, wherever it did.
 */
import type { ExitReport, Sandbox } from "../../../worker/sandbox/sandbox.ts";
import { workDirNames } from "../../../worker/sandbox/work/work-dir.ts";

/** The text of its `result.json`; undefined when there is none. */
export async function resultTextOf(
  { workDir }: Pick<Sandbox, "workDir">,
  { result }: Pick<ExitReport, "result">,
): Promise<string | undefined> {
  if (result !== undefined) return Buffer.from(result).toString("utf8");
  const left = await workDir.openLeft(workDirNames.result);
  if (left === undefined) return undefined;
  await using handle = left.handle;
  return await handle.readFile("utf8");
}
