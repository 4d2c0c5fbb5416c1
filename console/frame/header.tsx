/** The head of the page: the worker, the places, and whether the stream is there. */
import type { VNode } from "preact";
import type { Route } from "../routes.ts";
import { useConsole } from "../state/store.ts";
import { Badge } from "../ui/badge.tsx";

const places = [
  { address: "#/tools", label: "Tools", pages: ["tools", "tool"] },
  { address: "#/calls", label: "Calls", pages: ["calls", "call"] },
  { address: "#/charts", label: "Charts", pages: ["charts"] },
  { address: "#/worker", label: "Worker", pages: ["worker"] },
] as const;

export function Header(properties: {
  readonly route: Route;
  readonly onSignOut: () => void;
}): VNode {
  const { route, onSignOut } = properties;
  const { state } = useConsole();
  const isOpen = state.session === "open";
  return (
    <header class="top">
      <div class="bar">
        <div class="brand">
          <img src="icon.svg" alt="" width="24" height="24" />
          <strong>Worker console</strong>
          {state.view !== null && <span class="name quiet">{state.view.worker.id}</span>}
        </div>
        {isOpen && (
          <nav aria-label="Pages">
            {places.map(({ address, label, pages }) => {
              const isHere = pages.some((page) => page === route.page);
              return (
                <a key={address} href={address} aria-current={isHere ? "page" : undefined}>
                  {label}
                </a>
              );
            })}
          </nav>
        )}
        <div class="states">
          {isOpen && state.view !== null && <Readiness isReady={state.view.isReady} />}
          {isOpen && (
            <button type="button" class="plain" onClick={onSignOut}>
              Sign out
            </button>
          )}
        </div>
      </div>
      <div role="status" class={state.connection === "lost" && isOpen ? "lost" : "unseen"}>
        {state.connection === "lost" && isOpen ? "Connection lost, reconnecting…" : ""}
      </div>
    </header>
  );
}

function Readiness({ isReady }: { readonly isReady: boolean }): VNode {
  return (
    <a href="#/worker" class="bare">
      {isReady ? <Badge kind="good">ready</Badge> : <Badge kind="bad">not ready</Badge>}
    </a>
  );
}
