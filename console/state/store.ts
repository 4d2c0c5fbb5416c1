/** The state of the page, and how components get it. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { reduce } from "./reduce.ts";
import { initialState, type ConsoleEvent, type ConsoleState } from "./state.ts";

/** Holds the state; listeners hear of changes once a frame, however many events come. */
export class Store {
  #state = initialState;
  #frame: number | undefined;
  readonly #listeners = new Set<(state: ConsoleState) => void>();

  get state(): ConsoleState {
    return this.#state;
  }

  readonly dispatch = (event: ConsoleEvent): void => {
    this.#state = reduce(this.#state, event);
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = undefined;
      for (const listener of this.#listeners) listener(this.#state);
    });
  };

  /** Returns what ends the subscription. */
  subscribe(listener: (state: ConsoleState) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

export interface ConsoleParts {
  readonly state: ConsoleState;
  readonly dispatch: (event: ConsoleEvent) => void;
}

export const ConsoleContext = createContext<ConsoleParts>({
  state: initialState,
  dispatch: () => {},
});

/** The state and its changes, for components. */
export function useConsole(): ConsoleParts {
  return useContext(ConsoleContext);
}
