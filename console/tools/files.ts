/** The files of a call: what a form holds of them, and what the call gets. */
import type { InputReference, NewCall, ToolView } from "../../worker/console/api.ts";
import type { ObjectField } from "../form/field.ts";
import type { Problem } from "../form/read-draft.ts";

export type FileParameterView = ToolView["artifacts"][number];

/** A file of a parameter: stored, on its way, or failed. */
export interface FileEntry {
  readonly key: number;
  readonly name: string;
  /** From 0 to 1. */
  readonly progress: number;
  readonly stored: InputReference | null;
  readonly problem: string | null;
}

/** Parameters that the schema asks text for, and that can take files in its place. */
export function attachable({ members }: ObjectField): readonly FileParameterView[] {
  return members.flatMap(({ name, isRequired, field: read }) => {
    const field = read();
    const item = field.kind === "list" ? field.item() : field;
    const isOptional = !isRequired;
    return item.kind === "text" ? [{ name, isList: field.kind === "list", isOptional }] : [];
  });
}

/** Parameters that got files in an earlier call, though the tool does not ask for files. */
export function attachedBefore(
  parameters: readonly FileParameterView[],
  inputs: NewCall["inputs"],
): readonly FileParameterView[] {
  const known = new Set(parameters.map(({ name }) => name));
  return Object.entries(inputs).flatMap(([name, input]) =>
    known.has(name) ? [] : [{ name, isList: Array.isArray(input), isOptional: true }],
  );
}

export type FilesByParameter = Readonly<Record<string, readonly FileEntry[]>>;

/** The files of an earlier call, which are in the store. */
export function startFiles(
  parameters: readonly FileParameterView[],
  inputs: NewCall["inputs"],
): FilesByParameter {
  const entries = parameters.map(({ name }) => {
    const given = inputs[name] ?? [];
    const references = Array.isArray(given) ? (given as readonly InputReference[]) : [given];
    return [name, (references as readonly InputReference[]).map(storedEntry)] as const;
  });
  return Object.fromEntries(entries);
}

/** The inputs of a call; adds what is missing to `problems`. */
export function inputsOf(
  parameters: readonly FileParameterView[],
  files: FilesByParameter,
  problems: Problem[],
): NewCall["inputs"] {
  const inputs: Record<string, InputReference | readonly InputReference[]> = {};
  for (const { name, isList, isOptional } of parameters) {
    const entries = files[name] ?? [];
    if (entries.some(({ problem }) => problem !== null)) {
      problems.push({ path: [name], message: "has a file that could not be uploaded" });
    } else if (entries.some(({ stored }) => stored === null)) {
      problems.push({ path: [name], message: "has a file that is still being uploaded" });
    }
    const stored = entries.flatMap(({ stored: one }) => one ?? []);
    const [first] = stored;
    if (first === undefined) {
      if (!isOptional && entries.length === 0)
        problems.push({ path: [name], message: "needs a file" });
    } else inputs[name] = isList ? stored : first;
  }
  return inputs;
}

function storedEntry({ filename, version }: InputReference, key: number): FileEntry {
  return { key, name: filename, progress: 1, stored: { filename, version }, problem: null };
}
