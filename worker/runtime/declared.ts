/**
 * Backends that are names only, so that a configuration can say them and learn what to do instead.
 */
import type { RuntimeBackend } from "./api/backend.ts";
import { RuntimeError } from "./api/errors.ts";
import { checkRequest } from "./api/request.ts";

const instead = {
  kubernetes:
    "serve a runtime in pods with a runtime class such as gvisor, and execute by the backend remote",
  firecracker: "write a backend of your own by defineBackend, and hold it to backendContract",
} as const;

/** Kinds without an implementation. */
export type DeclaredKind = keyof typeof instead;
export const declaredKinds = Object.keys(instead) as readonly DeclaredKind[];

const neverAborts = new AbortController().signal;

/** A backend that checks requests and executes none: RuntimeError `RUNTIME_UNAVAILABLE`. */
export function declaredBackend(kind: DeclaredKind): RuntimeBackend {
  return {
    ...{ kind, languages: [], readiness: "stub", profiles: [], evidence: {} },
    execute: async (request, { signal = neverAborts } = {}) => {
      checkRequest(request, signal);
      const detail = `${kind} is not implemented: ${instead[kind]}`;
      throw new RuntimeError("RUNTIME_UNAVAILABLE", {
        ...{ detail, op: "select", backend: kind, retryable: false },
      });
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
