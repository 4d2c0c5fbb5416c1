/** CSV as a table, its first row as the head. */
import type { VNode } from "preact";
import { parseCsv } from "../format/csv.ts";
import { Table } from "../ui/table.tsx";
import { cellText, maxRows } from "./table-rows.ts";

export function CsvTable(properties: { readonly text: string; readonly name: string }): VNode {
  const { text, name } = properties;
  const [columns = [], ...rows] = parseCsv(text, maxRows + 2);
  return (
    <>
      <Table
        caption={name}
        isCaptionHidden
        columns={columns.map((column) => cellText(column))}
        rows={rows.slice(0, maxRows).map((row) => row.map((cell) => cellText(cell)))}
      />
      {rows.length > maxRows && <p class="quiet">The first {maxRows} rows.</p>}
    </>
  );
}
