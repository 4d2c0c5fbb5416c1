/** Reads CSV of RFC 4180 for a preview. */

/** At most `maxRows` rows of fields; the separator is a comma, a semicolon or a tab. */
export function parseCsv(text: string, maxRows: number): readonly (readonly string[])[] {
  const separator = separatorOf(text);
  const rows: string[][] = [];
  let [row, field, isQuoted] = [[] as string[], "", false];
  const endRow = (): void => {
    row.push(field);
    if (row.length > 1 || field !== "") rows.push(row);
    [row, field] = [[], ""];
  };
  for (let at = 0; at < text.length && rows.length < maxRows; at += 1) {
    const character = text[at] ?? "";
    if (isQuoted) {
      if (character !== '"') field += character;
      else if (text[at + 1] === '"') {
        field += '"';
        at += 1;
      } else isQuoted = false;
    } else if (character === '"' && field === "") isQuoted = true;
    else if (character === separator) {
      row.push(field);
      field = "";
    } else if (character === "\n") endRow();
    else if (character !== "\r") field += character;
  }
  if (rows.length < maxRows) endRow();
  return rows;
}

/** The separator that is the most frequent in the first line. */
function separatorOf(text: string): string {
  const [line = ""] = text.split("\n", 1);
  const count = (separator: string): number => line.split(separator).length;
  return [",", ";", "\t"].reduce((best, next) => (count(next) > count(best) ? next : best));
}
