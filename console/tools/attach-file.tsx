/** Gives a file to a parameter whose schema asks for text: tools may take a filename there. */
import type { VNode } from "preact";
import { useId, useState } from "preact/hooks";
import type { FileParameterView } from "./files.ts";

export function AttachFile(properties: {
  readonly candidates: readonly FileParameterView[];
  readonly onAttach: (parameter: FileParameterView) => void;
}): VNode | null {
  const { candidates, onAttach } = properties;
  const id = useId();
  const [chosen, setChosen] = useState(0);
  const candidate = candidates[chosen] ?? candidates[0];
  if (candidate === undefined) return null;
  return (
    <div class="field">
      <label class="label" htmlFor={id}>
        Give a file to
      </label>
      <div class="actions">
        <select
          id={id}
          value={chosen}
          onChange={(event) => setChosen(Number(event.currentTarget.value))}
        >
          {candidates.map(({ name }, index) => (
            <option key={name} value={index}>
              {name}
            </option>
          ))}
        </select>
        <button
          type="button"
          onClick={() => {
            setChosen(0);
            onAttach(candidate);
          }}
        >
          Attach a file
        </button>
      </div>
    </div>
  );
}
