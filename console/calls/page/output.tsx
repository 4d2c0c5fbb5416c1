/** What a tool tells while it runs: its statuses, and what it prints. */
import type { VNode } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { StatusView } from "../../../worker/console/api.ts";
import { formatTime } from "../../format/format.ts";
import { plainText } from "../../format/terminal-text.ts";
import type { OpenedCall } from "../../state/state.ts";
import { useConsole } from "../../state/store.ts";

/** Statuses that are shown, the newest. */
const maxShown = 100;

export function Statuses({ statuses }: { readonly statuses: readonly StatusView[] }): VNode | null {
  const { state } = useConsole();
  if (statuses.length === 0) return null;
  const nowMs = Date.now() + state.clockOffsetMs;
  const shown = statuses.slice(-maxShown);
  return (
    <section class="card stack tight" aria-labelledby="statuses-title">
      <h2 id="statuses-title">Statuses</h2>
      {shown.length < statuses.length && (
        <p class="quiet">
          The last {maxShown} of {statuses.length}.
        </p>
      )}
      <div class="statuses" role="log" aria-label="Statuses" tabIndex={0}>
        <ol>
          {shown.map((status, at) => (
            <li key={statuses.length - shown.length + at}>
              <time class="quiet">{formatTime(status.atMs, nowMs)}</time>
              <span class="lines">{status.text}</span>
            </li>
          ))}
        </ol>
      </div>
    </section>
  );
}

export function Output(properties: {
  readonly output: OpenedCall["output"];
  readonly isRunning: boolean;
  readonly isOwn: boolean;
}): VNode {
  const { output, isRunning, isOwn } = properties;
  const { state } = useConsole();
  const { stdout, stderr } = output;
  const isEmpty = stdout.text === "" && stderr.text === "";
  const isKept = isOwn || (state.view?.keepsOutput ?? false);
  return (
    <section class="card stack tight" aria-labelledby="output-title">
      <h2 id="output-title">Output</h2>
      {isEmpty && <p class="quiet">{emptyText(isRunning, isKept)}</p>}
      {stdout.text !== "" && <Stream name="stdout" {...stdout} />}
      {stderr.text !== "" && <Stream name="stderr" {...stderr} />}
    </section>
  );
}

function emptyText(isRunning: boolean, isKept: boolean): string {
  if (!isKept) return "Not kept of calls of agents (TOOL_LOGS).";
  return isRunning ? "Nothing yet." : "The tool printed nothing.";
}

function Stream(properties: {
  readonly name: string;
  readonly text: string;
  readonly isCut: boolean;
}): VNode {
  const { name, text, isCut } = properties;
  const place = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    const pre = place.current;
    if (pre !== null && isAtEnd.current) pre.scrollTop = pre.scrollHeight;
  }, [text]);
  return (
    <>
      <h3>
        {name} {isCut && <span class="quiet">the end of it</span>}
      </h3>
      <pre
        ref={place}
        class="output"
        tabIndex={0}
        role="region"
        aria-label={name}
        onScroll={({ currentTarget: pre }) => {
          isAtEnd.current = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 8;
        }}
      >
        {plainText(text)}
      </pre>
    </>
  );
}
