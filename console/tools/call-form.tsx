/** The form of a call: arguments by schema or as JSON, files, and what else a call can say. */
import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import type {
  CallDetail,
  JsonMembers,
  NewCall,
  ProfileView,
  ToolView,
} from "../../worker/console/api.ts";
import { startDraft } from "../form/start-draft.ts";
import { parametersOf } from "../form/field.ts";
import { pathText, readDraft, type Problem } from "../form/read-draft.ts";
import { renderField } from "../form/views/field-view.tsx";
import { MembersView } from "../form/views/group-view.tsx";
import { callAddress } from "../routes.ts";
import { makeCall, messageOf } from "../server/requests.ts";
import { Notice } from "../ui/notice.tsx";
import { isMembers, isSame } from "../values/json.ts";
import { Advanced, noOptions, readOptions } from "./advanced.tsx";
import { AttachFile } from "./attach-file.tsx";
import { FileParameter } from "./file-parameter.tsx";
import {
  type FileParameterView,
  attachable,
  attachedBefore,
  inputsOf,
  startFiles,
} from "./files.ts";
import { RawArguments } from "./raw-arguments.tsx";

export function CallForm(properties: {
  readonly tool: ToolView;
  readonly profiles: readonly ProfileView[];
  readonly given: CallDetail["request"];
}): VNode {
  const { tool, profiles, given } = properties;
  const [attached, setAttached] = useState(() =>
    attachedBefore(tool.artifacts, given?.inputs ?? {}),
  );
  const fileParameters = useMemo(() => [...tool.artifacts, ...attached], [attached]);
  // The schema stays as it was when the form began: a reload must not empty it.
  const [schema] = useState(tool.parameters);
  const root = useMemo(
    () => (schema === null ? undefined : parametersOf(schema, fileParameters)),
    [fileParameters],
  );
  const [draft, setDraft] = useState(
    () => root && startDraft(root, true, given === null ? {} : given.arguments),
  );
  const fits = useMemo(() => {
    if (root === undefined || draft === undefined || given === null) return root !== undefined;
    return isSame(readDraft(root, draft, true, [], []), given.arguments);
  }, []);
  const [isRaw, setIsRaw] = useState(!fits);
  const [raw, setRaw] = useState(() => JSON.stringify(given?.arguments ?? {}, null, 2));
  const [files, setFiles] = useState(() => startFiles(fileParameters, given?.inputs ?? {}));
  const [options, setOptions] = useState(noOptions);
  const [problems, setProblems] = useState<readonly string[]>([]);
  const [isSending, setIsSending] = useState(false);

  const readArguments = (found: Problem[]): JsonMembers | undefined => {
    if (!isRaw && root !== undefined && draft !== undefined) {
      const value = readDraft(root, draft, true, [], found);
      return isMembers(value) ? value : undefined;
    }
    const value = parseMembers(raw);
    if (value === undefined) found.push({ path: ["arguments"], message: "are not a JSON object" });
    return value;
  };

  const changeMode = (): void => {
    const found: Problem[] = [];
    const value = readArguments(found);
    setProblems([]);
    if (!isRaw) {
      if (value !== undefined) setRaw(JSON.stringify(value, null, 2));
      setIsRaw(true);
    } else if (value === undefined || root === undefined) {
      setProblems(found.map(problemText));
    } else {
      const next = startDraft(root, true, value);
      if (isSame(readDraft(root, next, true, [], []), value) || Object.keys(value).length === 0) {
        setDraft(next);
        setIsRaw(false);
      } else setProblems(["The form has no fields for some of these arguments."]);
    }
  };

  const attach = (parameter: FileParameterView): void => {
    setAttached([...attached, parameter]);
    if (schema === null || root === undefined || draft === undefined) return;
    const value = readDraft(root, draft, true, [], []);
    const next = parametersOf(schema, [...fileParameters, parameter]);
    setDraft(next && startDraft(next, true, value));
  };

  const submit = (event: Event): void => {
    event.preventDefault();
    const found: Problem[] = [];
    const values = readArguments(found);
    const inputs = inputsOf(fileParameters, files, found);
    const extra = readOptions(options, found);
    setProblems(found.map(problemText));
    if (values === undefined || found.length > 0) return;
    const call: NewCall = { tool: tool.name, arguments: values, inputs, ...extra };
    setIsSending(true);
    makeCall(call).then(
      (id) => {
        location.hash = callAddress(id);
      },
      (error: unknown) => {
        setIsSending(false);
        setProblems([messageOf(error)]);
      },
    );
  };

  return (
    <form class="card stack" aria-label={`Call ${tool.name}`} onSubmit={submit}>
      <div class="head">
        <h2>Arguments</h2>
        {root !== undefined && (
          <button type="button" aria-pressed={isRaw} onClick={changeMode}>
            Raw JSON
          </button>
        )}
      </div>
      {isRaw || root === undefined || draft === undefined ? (
        <RawArguments text={raw} hasSchema={root !== undefined} onChange={setRaw} />
      ) : (
        <MembersView field={root} draft={draft} onChange={setDraft} render={renderField} />
      )}
      {fileParameters.map((parameter) => (
        <FileParameter
          key={parameter.name}
          parameter={parameter}
          files={files[parameter.name] ?? []}
          onChange={(change) =>
            setFiles((before) => ({
              ...before,
              [parameter.name]: change(before[parameter.name] ?? []),
            }))
          }
        />
      ))}
      {!isRaw && root !== undefined && (
        <AttachFile candidates={attachable(root)} onAttach={attach} />
      )}
      <Advanced tool={tool} profiles={profiles} options={options} onChange={setOptions} />
      {problems.length > 0 && (
        <Notice kind="problem">
          <ul class="bare">
            {problems.map((problem) => (
              <li key={problem}>{problem}</li>
            ))}
          </ul>
        </Notice>
      )}
      <div>
        <button class="primary" type="submit" disabled={isSending}>
          {isSending ? "Calling…" : "Invoke"}
        </button>
      </div>
    </form>
  );
}

function problemText({ path, message }: Problem): string {
  return path.length === 0 ? message : `${pathText(path)} ${message}`;
}

function parseMembers(text: string): JsonMembers | undefined {
  try {
    const value = JSON.parse(text) as JsonMembers;
    return isMembers(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
