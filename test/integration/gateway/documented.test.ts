/**
 * The tools and programs of docs/gateway.md and docs/programs.md run as they stand there.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type RigTool, nodeTool, startRig } from "../../support/workers/rig.ts";

const docs = join(import.meta.dirname, "../../../docs");

/** The one block of a page in a language. */
function sampleOf(page: string, language: string): string {
  const text = readFileSync(join(docs, page), "utf8");
  const blocks = [...text.matchAll(/^```(\w*)\n([^]*?)^```$/gm)];
  const found = blocks.filter(([, name]) => name === language).map(([, , block = ""]) => block);
  expect(found).toHaveLength(1);
  return found[0] ?? "";
}

const called = `
def query(region: str, kind: str = "orders") -> dict:
    """Orders of a region."""
    return {"rows": [{"region": region, "kind": kind, "amount": amount} for amount in (1, 2)]}

def csv_convert(rows: list) -> dict:
    return {"csv": "\\n".join(str(row["amount"]) for row in rows)}
`;

test("what the pages on gateways and programs show does what they say", async () => {
  const module = "called";
  const programmatic = { allowed_callers: ["direct", "programmatic"] };
  const gateway = { tools: ["sales:*", "csv_convert"] };
  const program = (language: string): RigTool => ({
    ...{ runtime: "code", languages: [language], gateway },
  });
  await using rig = await startRig({
    tools: {
      query: {
        ...{ module, function: "query", namespace: "sales", ...programmatic },
        description: "Orders of a region.",
      },
      csv_convert: { module, function: "csv_convert", ...programmatic },
      report: { module: "report", function: "report", gateway },
      report_node: nodeTool("report.ts", "report", { gateway }),
      python: program("python"),
      typescript: program("typescript"),
    },
    files: { "called.py": called, "report.py": sampleOf("gateway.md", "python") },
    nodeFiles: { "report.ts": sampleOf("gateway.md", "ts") },
  });
  const resultOf = async (tool: string, args: object): Promise<unknown> => {
    const answer = await rig.call(tool, args as Parameters<typeof rig.call>[1]);
    if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
    return answer.toolResult;
  };
  const rows = (region: string, kind = "orders") =>
    [1, 2].map((amount) => ({ region, kind, amount }));
  expect(await resultOf("report", { region: "West" })).toEqual({
    tools: ["sales:query"],
    table: { csv: "1\n2" },
  });
  expect(await resultOf("report_node", { region: "West" })).toEqual({
    orders: rows("West"),
    returns: rows("West", "returns"),
  });
  const total = { value: { total: 6 }, stdout: "rows 4\n" };
  const codes = { python: "python", typescript: "ts" };
  for (const [tool, language] of Object.entries(codes)) {
    const code = sampleOf("programs.md", language);
    expect(await resultOf(tool, { code })).toMatchObject(total);
  }
});
