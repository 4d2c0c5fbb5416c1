/**
 * What a program finds in its instance: `tools`, `console`, timers. The text of the function runs
 * inside, so it uses nothing of its module. A program can break it for itself, and gets no further
 * by that: the host bounds and checks all that comes out.
 */
import type { Guest, GuestBounds, GuestHost, GuestTools } from "./contract.ts";

/** Defines the globals. */
export function makeGuest(
  host: GuestHost,
  bounds: GuestBounds,
  { encode, describe }: Pick<Guest, "encode" | "describe">,
  { tools, ToolCallError, answer }: GuestTools,
): Guest {
  const { defineProperty } = Object;
  const define = (name: string, value: unknown): void => {
    defineProperty(globalThis, name, { value, configurable: true, writable: true });
  };

  const shown = (value: unknown): string => {
    if (typeof value === "string") return value;
    if (value instanceof Error) return `${String(value)}\n${value.stack ?? ""}`.trimEnd();
    if (typeof value !== "object" || value === null) return String(value);
    try {
      return encode(value, bounds.maxArgsDepth);
    } catch {
      return "[object]";
    }
  };
  const printTo =
    (stream: "stdout" | "stderr") =>
    (...values: unknown[]): void =>
      host.write(stream, `${values.map(shown).join(" ")}\n`);
  const [print, printError] = [printTo("stdout"), printTo("stderr")];

  const timers = new Map<number, () => void>();
  let lastTimer = 0;
  const setTimeout = (action: (...args: unknown[]) => void, delayMs = 0, ...args: unknown[]) => {
    if (typeof action !== "function") throw new TypeError("setTimeout takes a function");
    if (timers.size >= bounds.maxTimers)
      throw new RangeError(`A program has at most ${bounds.maxTimers} timers`);
    const id = ++lastTimer;
    timers.set(id, () => action(...args));
    host.startTimer(id, Number(delayMs));
    return id;
  };
  const clearTimeout = (id: number): void => {
    if (timers.delete(id)) host.stopTimer(id);
  };

  // Whatever it throws is a rejection that nothing handles, whose reason the host gets.
  const settled = Promise.resolve();
  const then = settled.then.bind(settled);
  const queueMicrotask = (action: () => void): void => {
    if (typeof action !== "function") throw new TypeError("queueMicrotask takes a function");
    void then(() => action());
  };

  define("tools", tools);
  define("ToolCallError", ToolCallError);
  define("inputs", {});
  define("display", (value: unknown) => void encode(value, bounds.maxArgsDepth));
  define("setTimeout", setTimeout);
  define("clearTimeout", clearTimeout);
  define("queueMicrotask", queueMicrotask);
  define("console", {
    ...{ log: print, info: print, debug: print },
    ...{ error: printError, warn: printError, trace: printError },
  });

  return {
    ...{ encode, describe, answer },
    fire(timerId) {
      const action = timers.get(timerId);
      timers.delete(timerId);
      action?.();
    },
  };
}
