/** The session of the browser: by the token of a link, by the form, or by a cookie. */
import { useEffect, useState } from "preact/hooks";
import { tokenOf } from "../routes.ts";
import { endSession, hasSession, messageOf, startSession } from "../server/requests.ts";
import { followStream } from "../server/stream.ts";
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
    startSession(token).then(
      () => setSession("open"),
      (error: unknown) => {
        setProblem(messageOf(error));
        setSession("needed");
      },
    );
  };
  const signOut = (): void => {
    endSession().then(
      () => setSession("needed"),
      (error: unknown) => setProblem(messageOf(error)),
    );
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
    if (!takeToken()) {
      // A worker that cannot be asked is waited for by the stream.
      hasSession(stop.signal).then(
        (isOpen) => setSession(isOpen ? "open" : "needed"),
        () => setSession("open"),
      );
    }
    return () => stop.abort();
  }, []);

  useEffect(() => {
    if (session !== "open") return;
    const stop = new AbortController();
    followStream(dispatch, stop.signal);
    return () => stop.abort();
  }, [session]);

  return { problem, signIn, signOut };
}
