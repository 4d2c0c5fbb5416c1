/**
 * `secure-tool-runtime/runtime/testing`: what backends and gateways of users are held to, as lists
 * of named checks for any test runner.
 */
export { type BackendContract, backendContract } from "./testing/backend-contract.ts";
export { type GatewayContract, gatewayContract } from "./testing/gateway-contract.ts";
export type { Check } from "./testing/check.ts";
