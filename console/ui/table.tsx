/** A table that scrolls by itself where the page is narrow. */
import type { ComponentChildren, VNode } from "preact";

export function Table(properties: {
  readonly caption: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly ComponentChildren[])[];
  /** Places of columns with numbers. */
  readonly numeric?: readonly number[];
  readonly isCaptionHidden?: boolean;
}): VNode {
  const { caption, columns, rows, numeric = [], isCaptionHidden = false } = properties;
  const classOf = (at: number): string | undefined => (numeric.includes(at) ? "number" : undefined);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <caption class={isCaptionHidden ? "unseen" : undefined}>{caption}</caption>
        <thead>
          <tr>
            {columns.map((column, at) => (
              <th key={at} scope="col" class={classOf(at)}>
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, place) => (
                <td key={place} class={classOf(place)}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
