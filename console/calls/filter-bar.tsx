/** The choices above the list of calls. */
import type { VNode } from "preact";
import type { CallFilter } from "./filter.ts";

const outcomes = ["any", "running", "ok", "failed"] as const;

export function FilterBar(properties: {
  readonly filter: CallFilter;
  readonly tools: readonly string[];
  readonly isCommon: boolean;
  readonly onFilter: (filter: CallFilter) => void;
  readonly onCommon: (isCommon: boolean) => void;
}): VNode {
  const { filter, tools, isCommon, onFilter, onCommon } = properties;
  return (
    <div class="filters" role="group" aria-label="Filter">
      <label class="field">
        <span class="label">Tool</span>
        <select
          value={filter.tool}
          onChange={(event) => onFilter({ ...filter, tool: event.currentTarget.value })}
        >
          <option value="">all</option>
          {tools.map((tool) => (
            <option key={tool} value={tool}>
              {tool}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        <span class="label">Outcome</span>
        <select
          value={filter.outcome}
          onChange={(event) => {
            const outcome = outcomes.find((one) => one === event.currentTarget.value);
            onFilter({ ...filter, outcome: outcome ?? "any" });
          }}
        >
          {outcomes.map((outcome) => (
            <option key={outcome} value={outcome}>
              {outcome}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        <span class="label">Bars</span>
        <select
          value={isCommon ? "common" : "own"}
          onChange={(event) => onCommon(event.currentTarget.value === "common")}
        >
          <option value="own">by duration</option>
          <option value="common">by time</option>
        </select>
      </label>
      <label class="field check">
        <span class="label">From here only</span>
        <input
          type="checkbox"
          checked={filter.isOwnOnly}
          onChange={(event) => onFilter({ ...filter, isOwnOnly: event.currentTarget.checked })}
        />
      </label>
    </div>
  );
}
