/**
 * Ids of the queries of `node:dns`: c-ares draws them ahead for each resolver, and children of a
 * template would share what is left.
 */
import { quietly } from "../programs/quiet.js";

// Taken before the tool is loaded, which may replace them by accident or for its tests.
const { process } = globalThis;
const { getBuiltinModule } = process;
const { queryObjects } = getBuiltinModule("node:v8");
const { defineProperty, entries, getOwnPropertyDescriptors, getPrototypeOf } = Object;
const { apply } = Reflect;

/** One of them makes the resolver that the functions of `node:dns` share. */
const modules = new Set(["NativeModule dns", "NativeModule internal/dns/promises"]);

/** @typedef {Record<string, (...given: any[]) => any>} Channel c-ares' part of a resolver */

/**
 * To be called after the import. From now on the functions of `node:dns` have another resolver in
 * each process. Says why children would share ids, where they would.
 *
 * @returns {string | undefined}
 */
export function separateResolver() {
  const { moduleLoadList } = /** @type {NodeJS.Process & { moduleLoadList: string[] }} */ (process);
  if (!moduleLoadList.some((name) => modules.has(name))) return undefined;
  const { Resolver, getServers } = getBuiltinModule("node:dns");
  const servers = getServers();
  const make = () => {
    const resolver = new Resolver();
    // One that has been given servers does not look for others.
    if (`${resolver.getServers()}` !== `${servers}`) resolver.setServers(servers);
    return /** @type {{ _handle: Channel }} */ (/** @type {unknown} */ (resolver))._handle;
  };
  const prototype = getPrototypeOf(make());
  const shared = receiverOf(prototype, "getServers", getServers);
  const count = quietly(() => queryObjects(prototype.constructor, { format: "count" }));
  // The shared one, and the one that was made here.
  if (shared === undefined || count > 2) return "it has made a resolver of node:dns";
  /** @type {Channel | undefined} */
  let present;
  for (const [name, { value: method }] of entries(getOwnPropertyDescriptors(prototype))) {
    if (name === "constructor") continue;
    /** @param {any[]} given */
    const value = (...given) => apply(method, (present ??= make()), given);
    defineProperty(shared, name, { value });
  }
  return undefined;
}

/**
 * What a method is called on while this function runs.
 *
 * @param {Channel} prototype
 * @param {string} name
 * @param {() => unknown} call
 */
function receiverOf(prototype, name, call) {
  const own = prototype[name];
  if (own === undefined) return undefined;
  /** @type {Channel | undefined} */
  let receiver;
  prototype[name] = function (...given) {
    receiver = this;
    return apply(own, this, given);
  };
  call();
  prototype[name] = own;
  return receiver;
}
