/** The answer of a call, as it can be read best. */
import type { VNode } from "preact";
import type { JsonMembers, JsonValue } from "../../../worker/console/api.ts";
import { isMembers } from "../../values/json.ts";
import { Notice } from "../../ui/notice.tsx";
import { JsonTree } from "../../values/json-tree.tsx";
import { ValueView } from "../../values/value-view.tsx";

export function Result({ answer }: { readonly answer: JsonMembers }): VNode {
  const error = isMembers(answer["error"]) ? answer["error"] : undefined;
  const result = isMembers(answer["result"]) ? answer["result"] : undefined;
  return (
    <section class="card stack" aria-labelledby="result-title">
      <h2 id="result-title">Result</h2>
      {error !== undefined && (
        <Notice kind="problem">
          <strong>{text(error["code"])}</strong>
          <p class="lines">{text(error["message"])}</p>
        </Notice>
      )}
      {result?.["timed_out"] === true && <Notice kind="problem">The tool timed out.</Notice>}
      {result?.["tool_result"] !== undefined && <ValueView value={result["tool_result"]} />}
      <details>
        <summary>The whole answer</summary>
        <JsonTree value={answer} label="answer" />
      </details>
    </section>
  );
}

function text(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}
