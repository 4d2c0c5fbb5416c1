/** What a form holds while it is filled. */

export type Draft =
  /** Not given. */
  | { readonly kind: "absent" }
  /** Of texts, numbers and JSON, as typed. */
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "flag"; readonly isOn: boolean | null }
  /** The place of the chosen option; -1 for none. */
  | { readonly kind: "choice"; readonly index: number }
  | { readonly kind: "object"; readonly members: Readonly<Record<string, Draft>> }
  | { readonly kind: "list"; readonly items: readonly ListItem[] }
  | { readonly kind: "variant"; readonly index: number; readonly draft: Draft };

export interface ListItem {
  /** Stays with an item when others are removed. */
  readonly key: number;
  readonly draft: Draft;
}
