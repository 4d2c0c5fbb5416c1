/** A parameter that takes files: a place to drop them on, and a button. */
import type { VNode } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { messageOf } from "../server/requests.ts";
import { uploadInput } from "../server/upload.ts";
import { Need } from "../ui/need.tsx";
import type { FileEntry, FileParameterView } from "./files.ts";

type Change = (before: readonly FileEntry[]) => readonly FileEntry[];

export function FileParameter(properties: {
  readonly parameter: FileParameterView;
  readonly files: readonly FileEntry[];
  readonly onChange: (change: Change) => void;
}): VNode {
  const { parameter, files, onChange } = properties;
  const { name, isList, isOptional } = parameter;
  const [isOver, setIsOver] = useState(false);
  const add = useUploads(isList, onChange);
  const input = useRef<HTMLInputElement>(null);
  const id = useId();
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    setIsOver(false);
    add([...(event.dataTransfer?.files ?? [])]);
  };
  return (
    <fieldset class="files">
      <legend>
        <span class="name">{name}</span> <Need isOptional={isOptional} />
      </legend>
      <div
        class={isOver ? "drop over" : "drop"}
        onDragOver={(event) => {
          event.preventDefault();
          setIsOver(true);
        }}
        onDragLeave={() => setIsOver(false)}
        onDrop={drop}
      >
        <label htmlFor={id}>{isList ? "Drop files here, or" : "Drop a file here, or"}</label>
        <input
          ref={input}
          id={id}
          type="file"
          multiple={isList}
          onChange={(event) => {
            add([...(event.currentTarget.files ?? [])]);
            event.currentTarget.value = "";
          }}
        />
      </div>
      <ul class="bare" aria-live="polite" aria-label={`Files of ${name}`}>
        {files.map((file) => (
          <li key={file.key} class="file">
            <span class="name">{file.name}</span>
            <FileState file={file} />
            <button
              type="button"
              aria-label={`Remove ${file.name}`}
              onClick={() => {
                onChange((before) => before.filter(({ key }) => key !== file.key));
                input.current?.focus();
              }}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
    </fieldset>
  );
}

function FileState({ file }: { readonly file: FileEntry }): VNode {
  if (file.problem !== null) return <span class="bad-text">{file.problem}</span>;
  if (file.stored !== null) return <span class="quiet">stored, version {file.stored.version}</span>;
  return <progress value={file.progress} aria-label={`Upload of ${file.name}`} />;
}

/** Uploads what is added, until the form is gone. */
function useUploads(
  isList: boolean,
  onChange: (change: Change) => void,
): (files: readonly File[]) => void {
  const stop = useRef(new AbortController());
  const nextKey = useRef(1_000);
  useEffect(() => () => stop.current.abort(), []);
  const upload = (file: File): void => {
    nextKey.current += 1;
    const entry: FileEntry = {
      key: nextKey.current,
      name: file.name,
      progress: 0,
      stored: null,
      problem: null,
    };
    const update = (change: Partial<FileEntry>): void =>
      onChange((before) =>
        before.map((one) => (one.key === entry.key ? { ...one, ...change } : one)),
      );
    onChange((before) => (isList ? [...before, entry] : [entry]));
    uploadInput(file, (progress) => update({ progress }), stop.current.signal).then(
      ({ filename, version }) => update({ progress: 1, stored: { filename, version } }),
      (error: unknown) => update({ problem: messageOf(error) }),
    );
  };
  return (files) => {
    for (const file of isList ? files : files.slice(0, 1)) upload(file);
  };
}
