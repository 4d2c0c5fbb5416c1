/**
 * A gateway in a test of the suite.
 */
import { expect } from "vitest";
import { GatewayError, type ToolGateway } from "../../../worker/gateway/gateway.ts";
import {
  type GatewayLimits,
  defaultGatewayLimits,
} from "../../../worker/protocol/tool-calls/limits.ts";
import { type GatewaySetup, SuiteTools } from "./suite-tools.ts";

/** Makes a gateway; the receiver disposes it. */
export type CreateGateway = (setup: GatewaySetup) => Promise<OwnedGateway>;

export interface OwnedGateway extends AsyncDisposable {
  readonly gateway: ToolGateway;
}

export interface UnderTest extends OwnedGateway {
  readonly tools: SuiteTools;
}

export const never = new AbortController().signal;

export async function open(
  create: CreateGateway,
  limits: Partial<GatewayLimits> = {},
): Promise<UnderTest> {
  const tools = new SuiteTools();
  const owned = await create({ tools, limits: { ...defaultGatewayLimits, ...limits } });
  return Object.assign(owned, { tools });
}

/** The GatewayError that an operation rejects with. */
export async function failureOf(operation: Promise<unknown>): Promise<GatewayError> {
  const error: unknown = await operation.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(GatewayError);
  return error as GatewayError;
}

/** A value whose change throws. */
export function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null) return value;
  for (const each of Object.values(value)) deepFreeze(each);
  return Object.freeze(value);
}
