/** The controls of single values, with the browser's own validation. */
import type { VNode } from "preact";
import type { Draft } from "../draft.ts";
import type { ChoiceField, Field, NumberField, TextField } from "../field.ts";
import { inputPattern, inputType } from "./native.ts";

interface ControlProperties<Kind extends Field> {
  readonly id: string;
  readonly hintId: string | undefined;
  readonly field: Kind;
  readonly draft: Draft;
  readonly isRequired: boolean;
  readonly onChange: (draft: Draft) => void;
}

type Single = Exclude<Field, { readonly kind: "object" | "list" | "variant" }>;

export function Control(properties: ControlProperties<Single>): VNode {
  const { field } = properties;
  switch (field.kind) {
    case "text":
      return <TextControl {...properties} field={field} />;
    case "number":
      return <NumberControl {...properties} field={field} />;
    case "choice":
      return <ChoiceControl {...properties} field={field} />;
    case "boolean":
      return <FlagControl {...properties} />;
    case "json":
      return <Area {...properties} isCode isRequired={mustBeGiven(properties)} />;
  }
}

function TextControl(properties: ControlProperties<TextField>): VNode {
  const { id, hintId, field, draft, onChange } = properties;
  const type = inputType(field);
  if (type === undefined) {
    return <Area {...properties} isCode={false} isRequired={mustBeGiven(properties)} />;
  }
  // The types of inputs differ by this one, and take no union.
  const native = { type } as { readonly type: "text" };
  return (
    <input
      {...native}
      id={id}
      aria-describedby={hintId}
      required={mustBeGiven(properties)}
      minLength={field.minLength ?? undefined}
      maxLength={field.maxLength ?? undefined}
      pattern={inputPattern(field.pattern)}
      spellcheck={false}
      autocomplete="off"
      value={textOf(draft)}
      onInput={(event) => onChange({ kind: "text", text: event.currentTarget.value })}
    />
  );
}

function NumberControl(properties: ControlProperties<NumberField>): VNode {
  const { id, hintId, field, draft, onChange } = properties;
  return (
    <input
      id={id}
      type="number"
      aria-describedby={hintId}
      required={mustBeGiven(properties)}
      min={field.minimum ?? undefined}
      max={field.maximum ?? undefined}
      step={field.multipleOf ?? (field.isInteger ? 1 : "any")}
      value={textOf(draft)}
      onInput={(event) => onChange({ kind: "text", text: event.currentTarget.value })}
    />
  );
}

function ChoiceControl(properties: ControlProperties<ChoiceField>): VNode {
  const { id, hintId, field, draft, onChange } = properties;
  const index = draft.kind === "choice" ? draft.index : -1;
  return (
    <select
      id={id}
      aria-describedby={hintId}
      required={mustBeGiven(properties)}
      value={index === -1 ? "" : String(index)}
      onChange={(event) => {
        const { value } = event.currentTarget;
        onChange({ kind: "choice", index: value === "" ? -1 : Number(value) });
      }}
    >
      <option value="">—</option>
      {field.options.map(({ label }, at) => (
        <option key={at} value={String(at)}>
          {label}
        </option>
      ))}
    </select>
  );
}

/** A checkbox; three options where the value may stay open. */
function FlagControl(properties: ControlProperties<Field>): VNode {
  const { id, hintId, field, draft, isRequired, onChange } = properties;
  const isOn = draft.kind === "flag" ? draft.isOn : null;
  const hasTwoStates = (isRequired || typeof field.initial === "boolean") && !field.isNullable;
  if (hasTwoStates) {
    return (
      <input
        id={id}
        type="checkbox"
        aria-describedby={hintId}
        checked={isOn === true}
        onChange={(event) => onChange({ kind: "flag", isOn: event.currentTarget.checked })}
      />
    );
  }
  return (
    <select
      id={id}
      aria-describedby={hintId}
      value={isOn === null ? "" : String(isOn)}
      onChange={(event) => {
        const { value } = event.currentTarget;
        onChange({ kind: "flag", isOn: value === "" ? null : value === "true" });
      }}
    >
      <option value="">—</option>
      <option value="true">true</option>
      <option value="false">false</option>
    </select>
  );
}

function Area(properties: ControlProperties<Field> & { readonly isCode: boolean }): VNode {
  const { id, hintId, draft, isCode, isRequired, onChange } = properties;
  const text = textOf(draft);
  return (
    <textarea
      id={id}
      class={isCode ? "code" : undefined}
      rows={isCode ? 4 : Math.min(Math.max(text.split("\n").length, 1), 12)}
      aria-describedby={hintId}
      required={isRequired}
      spellcheck={!isCode}
      autocomplete="off"
      value={text}
      onInput={(event) => onChange({ kind: "text", text: event.currentTarget.value })}
    />
  );
}

/** Whether an empty control is a mistake, and no null. */
function mustBeGiven({ field, isRequired }: ControlProperties<Field>): boolean {
  return isRequired && !field.isNullable;
}

function textOf(draft: Draft): string {
  return draft.kind === "text" ? draft.text : "";
}
