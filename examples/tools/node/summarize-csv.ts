/**
 * An example tool that reads an artifact, tells how far it is and saves another.
 */
import { ToolError, type ToolContext } from "secure-tool-runtime/tool";
import { parseCsv } from "./csv.ts";

interface Column {
  readonly name: string;
  readonly filled: number;
  readonly min: number | null;
  readonly max: number | null;
  readonly mean: number | null;
}

/**
 * Counts the rows of a CSV artifact and says for each column what is in it. Saves the same as a
 * table.
 */
export async function summarizeCsv(
  { table }: { readonly table: string },
  ctx: ToolContext,
): Promise<object> {
  const text = await ctx.loadArtifactText("table");
  if (text === null) throw new ToolError(`There is no artifact "${table}"`);

  await ctx.sendStatus("Reading the table...");
  const [names, ...rows] = parseCsv(text);
  if (names === undefined) throw new ToolError(`${table} is empty`);
  const ragged = rows.findIndex((row) => row.length !== names.length);
  if (ragged !== -1) {
    throw new ToolError(`Row ${ragged + 2} of ${table} does not have ${names.length} fields`);
  }

  await ctx.sendStatus(`Looking at ${names.length} columns of ${rows.length} rows...`);
  const columns = names.map((name, index) =>
    summarize(
      name,
      rows.map((row) => row[index] ?? ""),
    ),
  );
  await ctx.saveArtifactText("summary.md", asMarkdown(columns), {
    mimeType: "text/markdown",
    description: `Columns of ${table}`,
  });
  return { rows: rows.length, columns, output_artifact: "summary.md" };
}

function summarize(name: string, fields: readonly string[]): Column {
  const filled = fields.filter((field) => field.trim() !== "");
  const numbers = filled.map(Number);
  const isNumeric = numbers.length > 0 && numbers.every(Number.isFinite);
  if (!isNumeric) return { name, filled: filled.length, min: null, max: null, mean: null };
  const sum = numbers.reduce((before, number) => before + number, 0);
  return {
    name,
    filled: filled.length,
    min: numbers.reduce((least, number) => Math.min(least, number)),
    max: numbers.reduce((most, number) => Math.max(most, number)),
    mean: sum / numbers.length,
  };
}

function asMarkdown(columns: readonly Column[]): string {
  const lines = columns.map(({ name, filled, min, max, mean }) =>
    ["", name, filled, min ?? "", max ?? "", mean ?? "", ""].join(" | ").trim(),
  );
  return ["| column | filled | min | max | mean |", "|---|---|---|---|---|", ...lines, ""].join(
    "\n",
  );
}
