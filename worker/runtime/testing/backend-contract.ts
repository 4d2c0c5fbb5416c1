/**
 * What every backend is held to.
 */
import assert from "node:assert/strict";
import type { RuntimeBackend } from "../api/backend.ts";
import type { Check } from "./check.ts";
import { executionChecks } from "./execution-checks.ts";
import { isolationChecks } from "./isolation-checks.ts";
import { limitChecks } from "./limit-checks.ts";
import { requestChecks } from "./request-checks.ts";
import { type BackendCheck, type CheckedCode, underCheck } from "./under-check.ts";

/** A backend, and how it is checked. */
export interface BackendContract extends CheckedCode {
  /** Each check disposes its own, or what shares one. */
  readonly newBackend: () => RuntimeBackend | Promise<RuntimeBackend>;
  readonly expectedKind: string;
  /** For a backend that cannot run code here. */
  readonly skipExecutionTests?: boolean;
  /** Whether code is not kept apart, as on the bare host: leaves out the checks of isolation. */
  readonly isUnsafe?: boolean;
}

/** The checks of a backend. */
export function backendContract(contract: BackendContract): readonly Check[] {
  const { skipExecutionTests = false, isUnsafe = false } = contract;
  const kind: BackendCheck = [
    `is of the kind ${contract.expectedKind}`,
    async ({ backend }) => assert.equal(backend.kind, contract.expectedKind),
  ];
  const executed = skipExecutionTests
    ? []
    : [...executionChecks(), ...limitChecks(), ...(isUnsafe ? [] : isolationChecks())];
  return [kind, ...requestChecks(), ...executed].map(([name, check]) => ({
    name,
    run: async () => {
      await using backend = await contract.newBackend();
      await check(underCheck(backend, contract));
    },
  }));
}
