/** All tools of the worker. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { ToolView } from "../../worker/console/api.ts";
import { formatCount } from "../format/format.ts";
import { toolAddress } from "../routes.ts";
import { useConsole } from "../state/store.ts";
import { Notice } from "../ui/notice.tsx";
import { searchTools } from "./search-tools.ts";

export function ToolList(): VNode {
  const { state } = useConsole();
  const [search, setSearch] = useState("");
  const tools = state.view?.tools ?? [];
  const found = searchTools(tools, search);
  return (
    <>
      <div class="head">
        <h1 tabIndex={-1}>Tools</h1>
        <label class="search">
          <span class="unseen">Search tools</span>
          <input
            type="search"
            placeholder="Search tools"
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        </label>
      </div>
      <p class="quiet" role="status">
        {found.length === tools.length
          ? formatCount(tools.length, "tool")
          : `${found.length} of ${formatCount(tools.length, "tool")}`}
      </p>
      {tools.length === 0 && <p>The worker serves no tools; its manifest lists them.</p>}
      <ul class="cards">
        {found.map((tool) => (
          <ToolCard key={tool.name} tool={tool} />
        ))}
      </ul>
    </>
  );
}

function ToolCard({ tool }: { readonly tool: ToolView }): VNode {
  return (
    <li class="card stack tight">
      <h2 class="name">
        <a href={toolAddress(tool.name)}>{tool.name}</a>
      </h2>
      {tool.description !== null && <p class="lines">{tool.description}</p>}
      {tool.problem !== null && <Notice kind="warning">{tool.problem}</Notice>}
      <p class="meta">{metaOf(tool)}</p>
    </li>
  );
}

/** How a tool runs, in a line. */
export function metaOf(tool: ToolView): string {
  return [
    tool.runtime,
    tool.profile === null ? "no profile" : `profile ${tool.profile}`,
    `start ${tool.startMode}`,
    `queue ${tool.queue}`,
    `at most ${tool.timeoutSeconds} s`,
  ].join(" · ");
}
