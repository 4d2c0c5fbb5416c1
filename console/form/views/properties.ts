/** What a field of a form is given. */
import type { VNode } from "preact";
import type { Draft } from "../draft.ts";
import type { Field } from "../field.ts";

export interface FieldProperties {
  readonly field: Field;
  readonly draft: Draft;
  readonly label: string;
  readonly isRequired: boolean;
  readonly onChange: (draft: Draft) => void;
}

export type RenderField = (
  properties: FieldProperties & { readonly key?: string | number },
) => VNode;
