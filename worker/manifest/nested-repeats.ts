/**
 * Whether calls may run twice of tools that call other tools.
 */
import { ToolScope } from "../protocol/tool-calls/tool-id.ts";
import { type ToolEntry, toolIdOf } from "./manifest.ts";

/**
 * A tool that may call one whose calls must not run twice is like that itself, unless its entry
 * says otherwise. Nothing is known of a tool of other workers, so it counts as one. Changes the
 * map.
 */
export function limitRepeats(tools: Map<string, ToolEntry>): void {
  const callers = [...tools.values()].flatMap(({ name, gateway }) =>
    gateway === undefined || gateway.isIdempotent
      ? []
      : [{ name, scope: new ToolScope(gateway.tools), callsOthers: gateway.remote.length > 0 }],
  );
  const isLimited = ({ name, scope, callsOthers }: (typeof callers)[number]): boolean =>
    tools.get(name)?.idempotent === true &&
    (callsOthers ||
      [...tools.values()].some(
        (called) =>
          !called.idempotent &&
          called.catalog.allowedCallers.has("programmatic") &&
          scope.allows(toolIdOf(called)),
      ));
  for (;;) {
    // One that was limited may be called by others.
    const limited = callers.filter(isLimited);
    if (limited.length === 0) return;
    for (const { name } of limited) {
      const entry = tools.get(name);
      if (entry !== undefined) tools.set(name, { ...entry, idempotent: false });
    }
  }
}
