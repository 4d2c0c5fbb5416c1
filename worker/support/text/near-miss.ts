/**
 * Finds the known name that a misspelt one probably means.
 */

/** Most edits between a misspelt name and the name it means. */
const maxEdits = 2;
/** Characters of the shorter name per edit: "mode" is not a misspelt "module". */
const charactersPerEdit = 3;

/**
 * The known name with the fewest edits from `name`, or undefined. An edit inserts, drops, replaces
 * or swaps characters; case, `_` and `-` do not count.
 */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const misspelt = fold(name);
  let found: string | undefined;
  let fewest = maxEdits + 1;
  for (const candidate of known) {
    const meant = fold(candidate);
    const shorter = Math.min(misspelt.length, meant.length);
    const allowed = Math.min(maxEdits, fewest - 1, Math.floor(shorter / charactersPerEdit));
    if (Math.abs(misspelt.length - meant.length) > allowed) continue;
    const edits = editsBetween(misspelt, meant);
    if (edits > allowed) continue;
    found = candidate;
    fewest = edits;
  }
  return found;
}

function fold(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, "");
}

/** Optimal string alignment distance (Damerau-Levenshtein without edits of edited text). */
function editsBetween(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replaced = at(last, column - 1) + (a[row - 1] === b[column - 1] ? 0 : 1);
      const isSwap = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      const swapped = row > 1 && column > 1 && isSwap ? at(beforeLast, column - 2) + 1 : Infinity;
      const shifted = Math.min(at(last, column), at(current, column - 1)) + 1;
      current.push(Math.min(replaced, swapped, shifted));
    }
    beforeLast = last;
    last = current;
  }
  return at(last, b.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Infinity;
}
