/** A field of a form with its label, its hint and its control. */
import type { VNode } from "preact";
import { useId } from "preact/hooks";
import { Need } from "../../ui/need.tsx";
import { Control } from "./controls.tsx";
import { hintOf } from "./hints.ts";
import { GroupView } from "./group-view.tsx";
import type { FieldProperties } from "./properties.ts";

/** For groups, whose members are fields again. */
export function renderField(properties: FieldProperties): VNode {
  return <FieldView {...properties} />;
}

function FieldView(properties: FieldProperties): VNode {
  const { field, draft, label, isRequired, onChange } = properties;
  const id = useId();
  if (field.kind === "object" || field.kind === "list" || field.kind === "variant") {
    return <GroupView {...properties} field={field} render={renderField} />;
  }
  const hints = hintOf(field);
  const hintId = field.description === null && hints === "" ? undefined : `${id}-hint`;
  const isCheckbox = field.kind === "boolean" && draft.kind === "flag" && draft.isOn !== null;
  return (
    <div class={isCheckbox ? "field check" : "field"}>
      <label class="label" htmlFor={id}>
        <span class="name">{label}</span> {!isCheckbox && <Need isOptional={!isRequired} />}
      </label>
      {hintId !== undefined && (
        <span class="hint lines" id={hintId}>
          {[field.description ?? "", hints].filter((hint) => hint !== "").join("\n")}
        </span>
      )}
      <Control
        id={id}
        hintId={hintId}
        field={field}
        draft={draft}
        isRequired={isRequired}
        onChange={onChange}
      />
    </div>
  );
}
