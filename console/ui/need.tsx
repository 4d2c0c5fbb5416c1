/** Whether something must be given. */
import type { VNode } from "preact";

export function Need({ isOptional }: { readonly isOptional: boolean }): VNode {
  return <span class="need">{isOptional ? "optional" : "required"}</span>;
}
