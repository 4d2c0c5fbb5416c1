/** Arguments as the text of a JSON object. */
import type { VNode } from "preact";
import { useId } from "preact/hooks";

export function RawArguments(properties: {
  readonly text: string;
  readonly hasSchema: boolean;
  readonly onChange: (text: string) => void;
}): VNode {
  const { text, hasSchema, onChange } = properties;
  const id = useId();
  return (
    <label class="field" htmlFor={id}>
      <span class="label">Arguments as JSON</span>
      {!hasSchema && (
        <span class="hint" id={`${id}-hint`}>
          There is no schema that a form could be made of.
        </span>
      )}
      <textarea
        id={id}
        class="code"
        rows={8}
        spellcheck={false}
        autocomplete="off"
        aria-describedby={hasSchema ? undefined : `${id}-hint`}
        value={text}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    </label>
  );
}
