/** The session of a tab: by the token of a link, by the form, or by the token that the tab has. */
import { useEffect, useState } from "preact/hooks";
import { tokenOf } from "../routes.ts";
import { followStream } from "../server/stream.ts";
import { knownToken, setToken } from "../server/token.ts";
import type { ConsoleEvent, ConsoleState } from "../state/state.ts";

export interface Session {
  /** Why the last token did not do. */
  readonly problem: string | null;
  readonly signIn: (token: string) => void;
  readonly signOut: () => void;
}

/** Opens the session and follows the stream while it is open. */
export function useSession(
  session: ConsoleState["session"],
  dispatch: (event: ConsoleEvent) => void,
): Session {
  const [problem, setProblem] = useState<string | null>(null);
  const setSession = (next: "needed" | "open"): void =>
    dispatch({ type: "session", session: next });

  const signIn = (token: string): void => {
    setProblem(null);
    setToken(token);
    setSession("open");
  };
  const signOut = (): void => {
    setToken(null);
    setSession("needed");
  };

  useEffect(() => {
    const stop = new AbortController();
    const takeToken = (): boolean => {
      const token = tokenOf(location.hash);
      if (token === undefined) return false;
      // A token must not stay in the address, nor in the history.
      history.replaceState(null, "", `${location.pathname}${location.search}#/tools`);
      signIn(token);
      return true;
    };
    addEventListener("hashchange", takeToken, { signal: stop.signal });
    // The stream tells whether the worker knows it.
    if (!takeToken()) setSession(knownToken() === null ? "needed" : "open");
    return () => stop.abort();
  }, []);

  useEffect(() => {
    if (session !== "open") return;
    const stop = new AbortController();
    void followStream(dispatch, stop.signal).then((isRefused) => {
      if (!isRefused) return;
      setToken(null);
      setProblem("This is not the token of this worker's console.");
      setSession("needed");
    });
    return () => stop.abort();
  }, [session]);

  return { problem, signIn, signOut };
}
