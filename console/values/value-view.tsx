/** A result in the view that suits it: text, images, tables, or a tree. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { JsonValue } from "../../worker/console/api.ts";
import { plainText } from "../format/terminal-text.ts";
import { isMembers } from "./json.ts";
import { Table } from "../ui/table.tsx";
import { imagesOf } from "./images.ts";
import { JsonTree } from "./json-tree.tsx";
import { cellText, gridsOf } from "./table-rows.ts";

type View = "images" | "tables" | "text" | "tree";

const labels: Readonly<Record<View, string>> = {
  images: "Image",
  tables: "Table",
  text: "Text",
  tree: "Tree",
};

export function ValueView({ value }: { readonly value: JsonValue }): VNode {
  const views = viewsOf(value);
  const [chosen, setChosen] = useState<View | undefined>(undefined);
  const view = views.find((one) => one === chosen) ?? views[0] ?? "tree";
  return (
    <div class="stack tight">
      {views.length > 1 && (
        <div class="actions" role="group" aria-label="View of the result">
          {views.map((one) => (
            <button
              key={one}
              type="button"
              aria-pressed={one === view}
              onClick={() => setChosen(one)}
            >
              {labels[one]}
            </button>
          ))}
        </div>
      )}
      {view === "images" && <Images value={value} />}
      {view === "tables" && <Tables value={value} />}
      {view === "text" && <Texts value={value} />}
      {view === "tree" && <JsonTree value={value} label="result" />}
    </div>
  );
}

function viewsOf(value: JsonValue): readonly View[] {
  const hasText = textsOf(value).some(({ text }) => text.includes("\n") || text.length > 80);
  return [
    ...(imagesOf(value).length > 0 ? (["images"] as const) : []),
    ...(gridsOf(value).length > 0 ? (["tables"] as const) : []),
    ...(hasText || typeof value === "string" ? (["text"] as const) : []),
    "tree",
  ];
}

/** The texts of a result: itself, or its members, each with its name. */
function textsOf(
  value: JsonValue,
): readonly { readonly name: string | null; readonly text: string }[] {
  if (typeof value === "string") return [{ name: null, text: value }];
  if (!isMembers(value)) return [];
  return Object.entries(value).flatMap(([name, text]) =>
    typeof text === "string" ? [{ name, text }] : [],
  );
}

function Images({ value }: { readonly value: JsonValue }): VNode {
  return (
    <>
      {imagesOf(value).map(({ name, source }) => (
        <figure key={name}>
          <img class="preview" src={source} alt={name ?? "result"} />
          {name !== null && <figcaption class="name">{name}</figcaption>}
        </figure>
      ))}
    </>
  );
}

function Tables({ value }: { readonly value: JsonValue }): VNode {
  return (
    <>
      {gridsOf(value).map(({ name, grid }) => (
        <div key={name}>
          <Table
            caption={name ?? "Result"}
            columns={grid.columns}
            rows={grid.rows.map((row) => row.map((cell) => cellText(cell)))}
          />
          {grid.more > 0 && <p class="quiet">{grid.more} more rows; the tree has them.</p>}
        </div>
      ))}
    </>
  );
}

function Texts({ value }: { readonly value: JsonValue }): VNode {
  return (
    <>
      {textsOf(value).map(({ name, text }) => (
        <div key={name}>
          {name !== null && <h3 class="name">{name}</h3>}
          <pre class="output" tabIndex={0} role="region" aria-label={name ?? "text"}>
            {plainText(text)}
          </pre>
        </div>
      ))}
    </>
  );
}
