/**
 * What every gateway is held to.
 */
import assert from "node:assert/strict";
import type { ToolGateway } from "../../gateway/gateway.ts";
import { type Check, deepFreeze, rejection } from "./check.ts";

/** A gateway, and how it is checked. */
export interface GatewayContract {
  /** With at least one tool, that succeeds without arguments or says what it needs. */
  readonly newGateway: () => ToolGateway | Promise<ToolGateway>;
}

/** Operations at once. */
const manyAtOnce = 50;
/** An id that no gateway has. */
const unknown = "no_such_namespace:no_such_tool";
const never = new AbortController().signal;

type GatewayCheck = readonly [name: string, check: (gateway: ToolGateway) => Promise<void>];

const operations: readonly (readonly [
  string,
  (gateway: ToolGateway, id: string, signal: AbortSignal) => Promise<unknown>,
])[] = [
  ["searchTools", (gateway, _, signal) => gateway.searchTools("", 10, signal)],
  ["listNamespaces", (gateway, _, signal) => gateway.listNamespaces(signal)],
  ["describeTool", (gateway, id, signal) => gateway.describeTool(id, "full", signal)],
  ["listToolExamples", (gateway, id, signal) => gateway.listToolExamples(id, 3, signal)],
  ["runTool", (gateway, id, signal) => gateway.runTool(id, {}, signal)],
  ["runChain", (gateway, id, signal) => gateway.runChain([{ toolId: id }], signal)],
];

const checks: readonly GatewayCheck[] = [
  [
    "finds tools, at most as many as asked for",
    async (gateway) => {
      const all = await gateway.searchTools("", 50, never);
      assert.ok(all.length > 0, "it has no tool");
      assert.equal((await gateway.searchTools("", 1, never)).length, 1);
      for (const { id, name, namespace, shortDescription, tags } of all) {
        assert.equal(id, namespace === "" ? name : `${namespace}:${name}`);
        assert.equal(typeof shortDescription, "string");
        assert.ok(Array.isArray(tags));
      }
    },
  ],
  [
    "lists the namespaces of its tools, sorted and each once",
    async (gateway) => {
      const namespaces = await gateway.listNamespaces(never);
      assert.deepEqual([...namespaces], [...new Set(namespaces)].sort());
      for (const { namespace } of await gateway.searchTools("", 50, never))
        assert.ok(namespace === "" || namespaces.includes(namespace), namespace);
    },
  ],
  [
    "describes a tool by level",
    async (gateway) => {
      const id = await someId(gateway);
      for (const level of ["summary", "schema", "full"] as const) {
        const doc = await gateway.describeTool(id, level, never);
        assert.equal(doc.id, id);
        assert.equal(typeof doc.summary, "string");
        if (level === "summary") assert.equal(doc.parameters, undefined);
        if (level !== "full") assert.equal(doc.notes, undefined);
      }
    },
  ],
  [
    "lists at most as many examples as asked for",
    async (gateway) => {
      const id = await someId(gateway);
      assert.ok((await gateway.listToolExamples(id, 1, never)).length <= 1);
      assert.deepEqual(await gateway.listToolExamples(id, 0, never), []);
    },
  ],
  [
    "refuses a tool that it does not have, in every operation",
    async (gateway) => {
      for (const [name, operation] of operations.slice(2)) {
        const error = await rejection(operation(gateway, unknown, never));
        const { code } = error as { readonly code?: unknown };
        assert.equal(code, "NOT_ALLOWED", `${name}: ${String(error)}`);
      }
    },
  ],
  ...operations.map(([name, operation]): GatewayCheck => [
    `rejects ${name} with the signal's reason`,
    async (gateway) => {
      const reason = new Error("not wanted");
      const aborted = operation(gateway, await someId(gateway), AbortSignal.abort(reason));
      assert.equal(await rejection(aborted), reason);
    },
  ]),
  [
    "has an empty result for a chain without steps",
    async (gateway) => {
      const { structured, stepResults } = await gateway.runChain([], never);
      assert.deepEqual([structured, stepResults], [{}, []]);
    },
  ],
  [
    "stops a chain at its first error, with the results so far",
    async (gateway) => {
      const chain = gateway.runChain([{ toolId: unknown }, { toolId: unknown }], never);
      const { stepResults } = (await rejection(chain)) as {
        readonly stepResults?: readonly { readonly error?: { readonly code: string } }[];
      };
      assert.deepEqual(
        stepResults?.map(({ error }) => error?.code),
        ["NOT_ALLOWED"],
      );
    },
  ],
  [
    "takes frozen arguments",
    async (gateway) => {
      const id = await someId(gateway);
      const args = deepFreeze({ list: [1, { a: 2 }] });
      await gateway.runTool(id, args, never).catch(requireFailure);
      await gateway.runChain(deepFreeze([{ toolId: id, args }]), never).catch(requireFailure);
      assert.deepEqual(args, { list: [1, { a: 2 }] });
    },
  ],
  [
    "gives results that share nothing",
    async (gateway) => {
      const id = await someId(gateway);
      const one = await gateway.describeTool(id, "full", never);
      Object.assign(one, { summary: "changed", id: "changed" });
      assert.equal((await gateway.describeTool(id, "full", never)).id, id);
      const [found] = await gateway.searchTools("", 1, never);
      assert.ok(found);
      Object.assign(found, { id: "changed" });
      assert.notEqual((await gateway.searchTools("", 1, never))[0]?.id, "changed");
    },
  ],
  [
    `serves ${manyAtOnce} at once`,
    async (gateway) => {
      const id = await someId(gateway);
      const docs = await Promise.all(
        Array.from({ length: manyAtOnce }, () => gateway.describeTool(id, "summary", never)),
      );
      assert.deepEqual(
        docs.map((doc) => doc.id),
        Array(manyAtOnce).fill(id),
      );
    },
  ],
];

/** The checks of a gateway. */
export function gatewayContract({ newGateway }: GatewayContract): readonly Check[] {
  return checks.map(([name, check]) => ({ name, run: async () => check(await newGateway()) }));
}

async function someId(gateway: ToolGateway): Promise<string> {
  const [found] = await gateway.searchTools("", 1, never);
  assert.ok(found, "it has no tool");
  return found.id;
}

/** A tool may refuse the arguments of a check, by an error that says why. */
function requireFailure(error: unknown): void {
  const { code } = Object(error) as { readonly code?: unknown };
  assert.equal(typeof code, "string", String(error));
}
