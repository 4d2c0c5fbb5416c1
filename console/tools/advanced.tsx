/** What a call may say besides its arguments: profile, timeout, configuration of the tool. */
import type { VNode } from "preact";
import { useId } from "preact/hooks";
import type { JsonMembers, NewCall, ProfileView, ToolView } from "../../worker/console/api.ts";
import { isMembers } from "../values/json.ts";
import type { Problem } from "../form/read-draft.ts";

/** As typed; empty for what is not given. */
export interface CallOptions {
  readonly profile: string;
  readonly timeout: string;
  readonly toolConfig: string;
}

export const noOptions: CallOptions = { profile: "", timeout: "", toolConfig: "" };

/** The options of a call; adds what is wrong to `problems`. */
export function readOptions(
  options: CallOptions,
  problems: Problem[],
): Pick<NewCall, "profile" | "timeoutSeconds" | "toolConfig"> {
  const { profile, timeout, toolConfig } = options;
  return {
    ...(profile === "" ? {} : { profile }),
    ...(timeout === "" ? {} : { timeoutSeconds: Number(timeout) }),
    ...(toolConfig.trim() === "" ? {} : { toolConfig: readConfig(toolConfig, problems) }),
  };
}

export function Advanced(properties: {
  readonly tool: ToolView;
  readonly profiles: readonly ProfileView[];
  readonly options: CallOptions;
  readonly onChange: (options: CallOptions) => void;
}): VNode {
  const { tool, profiles, options, onChange } = properties;
  const id = useId();
  return (
    <details>
      <summary>Profile, timeout, configuration</summary>
      <div class="stack">
        <label class="field">
          <span class="label">Profile</span>
          <select
            value={options.profile}
            onChange={(event) => onChange({ ...options, profile: event.currentTarget.value })}
          >
            <option value="">{`as the manifest says (${tool.profile ?? "none"})`}</option>
            {profiles.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label class="field" htmlFor={`${id}-timeout`}>
          <span class="label">Timeout in seconds</span>
          <input
            id={`${id}-timeout`}
            type="number"
            min="0.1"
            max={tool.timeoutSeconds}
            step="any"
            placeholder={String(tool.timeoutSeconds)}
            value={options.timeout}
            onInput={(event) => onChange({ ...options, timeout: event.currentTarget.value })}
          />
        </label>
        <label class="field" htmlFor={`${id}-config`}>
          <span class="label">Configuration of the tool, as JSON</span>
          <span class="hint" id={`${id}-hint`}>
            May hold secrets: the worker does not keep it, and a later call does not fill it in.
          </span>
          <textarea
            id={`${id}-config`}
            class="code"
            rows={3}
            spellcheck={false}
            autocomplete="off"
            aria-describedby={`${id}-hint`}
            value={options.toolConfig}
            onInput={(event) => onChange({ ...options, toolConfig: event.currentTarget.value })}
          />
        </label>
      </div>
    </details>
  );
}

function readConfig(text: string, problems: Problem[]): JsonMembers {
  try {
    const value = JSON.parse(text) as JsonMembers;
    if (isMembers(value)) return value;
  } catch {
    // Said below, as for JSON that is no object.
  }
  problems.push({ path: ["configuration"], message: "is not a JSON object" });
  return {};
}
