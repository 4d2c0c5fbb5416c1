/** The page: its session, its stream, and the place that its address names. */
import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { CallList } from "./calls/call-list.tsx";
import { CallPage } from "./calls/page/call-page.tsx";
import { ChartsPage } from "./charts/charts-page.tsx";
import { Header } from "./frame/header.tsx";
import { TokenForm } from "./frame/token-form.tsx";
import { useSession } from "./frame/use-session.ts";
import { parseRoute, type Route } from "./routes.ts";
import { ConsoleContext, type Store } from "./state/store.ts";
import { ToolList } from "./tools/tool-list.tsx";
import { ToolPage } from "./tools/tool-page.tsx";
import { WorkerPage } from "./worker/worker-page.tsx";

export function App({ store }: { readonly store: Store }): VNode {
  const [state, setState] = useState(store.state);
  useEffect(() => store.subscribe(setState), [store]);
  const session = useSession(state.session, store.dispatch);
  const route = useRoute();
  const main = useRef<HTMLElement>(null);
  useHeadingFocus(main, route);
  const parts = useMemo(() => ({ state, dispatch: store.dispatch }), [state]);
  return (
    <ConsoleContext.Provider value={parts}>
      <a class="skip" href="#main" onClick={(event) => skipTo(event, main.current)}>
        Skip to the content
      </a>
      <Header route={route} onSignOut={session.signOut} />
      <main ref={main} id="main" tabIndex={-1}>
        {state.session === "needed" ? (
          <TokenForm problem={session.problem} onToken={session.signIn} />
        ) : (
          <Page route={route} isLoading={state.view === null} />
        )}
      </main>
    </ConsoleContext.Provider>
  );
}

function Page({ route, isLoading }: { readonly route: Route; readonly isLoading: boolean }): VNode {
  if (isLoading) return <h1 tabIndex={-1}>Loading…</h1>;
  switch (route.page) {
    case "tools":
      return <ToolList />;
    case "tool":
      return (
        <ToolPage key={`${route.name} ${route.again}`} name={route.name} again={route.again} />
      );
    case "calls":
      return <CallList />;
    case "call":
      return <CallPage key={route.id} id={route.id} />;
    case "charts":
      return <ChartsPage />;
    case "worker":
      return <WorkerPage />;
    case "unknown":
      return (
        <>
          <h1 tabIndex={-1}>No such page</h1>
          <p>
            <a href="#/tools">All tools</a>
          </p>
        </>
      );
  }
}

/** The route, which follows the address. */
function useRoute(): Route {
  const [fragment, setFragment] = useState(location.hash);
  useEffect(() => {
    const follow = (): void => setFragment(location.hash);
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return useMemo(() => parseRoute(fragment), [fragment]);
}

/** Moves the focus to the heading of a new page, and names the page in the title. */
function useHeadingFocus(main: { readonly current: HTMLElement | null }, route: Route): void {
  const before = useRef(route);
  useEffect(() => {
    const heading = main.current?.querySelector("h1");
    document.title = `${heading?.textContent ?? "Console"} – worker console`;
    if (before.current === route) return;
    before.current = route;
    heading?.focus();
    scrollTo(0, 0);
  });
}

function skipTo(event: Event, main: HTMLElement | null): void {
  event.preventDefault();
  main?.focus();
}
