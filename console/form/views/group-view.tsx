/** Fields that hold others: objects, lists, and one of several variants. */
import type { VNode } from "preact";
import { useId } from "preact/hooks";
import { Need } from "../../ui/need.tsx";
import { absent, startDraft, startItem, startVariant } from "../start-draft.ts";
import type { Draft } from "../draft.ts";
import type { ListField, ObjectField, VariantField } from "../field.ts";
import type { FieldProperties, RenderField } from "./properties.ts";

type Group = ObjectField | ListField | VariantField;

interface GroupProperties<Kind extends Group> {
  readonly field: Kind;
  readonly draft: Draft;
  readonly onChange: (draft: Draft) => void;
  /** Renders a member. */
  readonly render: RenderField;
}

export function GroupView(
  properties: Omit<FieldProperties, "field"> & GroupProperties<Group>,
): VNode {
  const { field, draft, label, isRequired, onChange, render: Field } = properties;
  const isGiven = draft.kind !== "absent";
  return (
    <fieldset>
      <legend>
        <span class="name">{label}</span> <Need isOptional={!isRequired} />
      </legend>
      {field.description !== null && <p class="hint lines">{field.description}</p>}
      {isGiven && <Inside field={field} draft={draft} onChange={onChange} render={Field} />}
      {(!isRequired || field.isNullable || !isGiven) && (
        <button type="button" onClick={() => onChange(isGiven ? absent : startDraft(field, true))}>
          {isGiven ? `Leave out ${label}` : `Give ${label}`}
        </button>
      )}
    </fieldset>
  );
}

/** The members of an object, one below the other. */
export function MembersView(properties: GroupProperties<ObjectField>): VNode {
  const { field, draft, onChange, render: Field } = properties;
  const members = draft.kind === "object" ? draft.members : {};
  if (field.members.length === 0) return <p class="quiet">No arguments.</p>;
  return (
    <div class="stack">
      {field.members.map((member) => (
        <Field
          key={member.name}
          field={member.field()}
          draft={members[member.name] ?? absent}
          label={member.name}
          isRequired={member.isRequired}
          onChange={(changed) =>
            onChange({ kind: "object", members: { ...members, [member.name]: changed } })
          }
        />
      ))}
    </div>
  );
}

function Inside(properties: GroupProperties<Group>): VNode {
  const { field } = properties;
  if (field.kind === "object") return <MembersView {...properties} field={field} />;
  if (field.kind === "list") return <ListView {...properties} field={field} />;
  return <VariantView {...properties} field={field} />;
}

function ListView(properties: GroupProperties<ListField>): VNode {
  const { field, draft, onChange, render: Field } = properties;
  const items = draft.kind === "list" ? draft.items : [];
  const isFull = field.maxItems !== null && items.length >= field.maxItems;
  const nextKey = 1 + Math.max(-1, ...items.map(({ key }) => key));
  const setItems = (next: typeof items): void => onChange({ kind: "list", items: next });
  return (
    <div class="stack tight">
      {items.map((item, at) => (
        <div key={item.key} class="item">
          <Field
            field={field.item()}
            draft={item.draft}
            label={`Item ${at + 1}`}
            isRequired
            onChange={(changed) => setItems(items.with(at, { ...item, draft: changed }))}
          />
          <button
            type="button"
            aria-label={`Remove item ${at + 1}`}
            disabled={items.length <= field.minItems}
            onClick={() => setItems(items.toSpliced(at, 1))}
          >
            Remove
          </button>
        </div>
      ))}
      <div>
        <button
          type="button"
          disabled={isFull}
          onClick={() => setItems([...items, startItem(field, nextKey)])}
        >
          Add item
        </button>
      </div>
    </div>
  );
}

function VariantView(properties: GroupProperties<VariantField>): VNode {
  const { field, draft, onChange, render: Field } = properties;
  const id = useId();
  const index = draft.kind === "variant" ? draft.index : 0;
  const inner = draft.kind === "variant" ? draft.draft : absent;
  const variant = field.variants[index];
  return (
    <div class="stack tight">
      <label class="field" htmlFor={id}>
        <span class="label">Variant</span>
        <select
          id={id}
          value={String(index)}
          onChange={(event) => onChange(startVariant(field, Number(event.currentTarget.value)))}
        >
          {field.variants.map(({ label }, at) => (
            <option key={at} value={String(at)}>
              {label}
            </option>
          ))}
        </select>
      </label>
      {variant !== undefined && (
        <Field
          key={index}
          field={variant.field()}
          draft={inner}
          label={variant.label}
          isRequired
          onChange={(changed) => onChange({ kind: "variant", index, draft: changed })}
        />
      )}
    </div>
  );
}
