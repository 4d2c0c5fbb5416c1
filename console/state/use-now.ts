/** The worker's clock for what runs. */
import { useEffect, useState } from "preact/hooks";
import { useConsole } from "./store.ts";

const tickMs = 1_000;

/** The worker's time; it goes on each second while `isTicking`. */
export function useNow(isTicking: boolean): number {
  const { state } = useConsole();
  const [, setTick] = useState(0);
  useEffect(() => {
    if (!isTicking) return;
    const timer = setInterval(() => setTick((tick) => tick + 1), tickMs);
    return () => clearInterval(timer);
  }, [isTicking]);
  return Date.now() + state.clockOffsetMs;
}
