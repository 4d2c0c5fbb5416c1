/**
 * A fresh engine with all that programs find in it.
 */
import { type JSValueHandle, QuickJS } from "quickjs-wasi";
import type { GuestBounds, GuestHost } from "./guest/contract.ts";
import { takeEngineErrors } from "./guest/engine-errors.ts";
import { makeDescribe, makeEncode } from "./guest/json.ts";
import { makeTools } from "./guest/tools.ts";
import { makeGuest } from "./guest/globals.ts";
import {
  engineStackBytes,
  maxRejections,
  maxRequestsAtOnce,
  maxTimers,
  maxValueDepth,
  reservedMemoryBytes,
} from "./limits.ts";
import type { Engine } from "./messages.ts";

/** An engine. Its memory goes with the last reference. */
export interface Machine {
  readonly vm: QuickJS;
  /** Greatest size of the memory. */
  readonly memoryBytes: number;
  readonly memory: { readonly buffer: ArrayBufferLike };
  /** Functions inside. */
  readonly guest: Readonly<Record<"answer" | "fire" | "encode" | "describe", JSValueHandle>>;
  /** Reasons of rejected promises that nothing handles, by the promise's identity. */
  readonly rejections: ReadonlyMap<number, JSValueHandle>;
}

/** The program decides all values that the host gets. */
export async function startMachine(engine: Engine, host: GuestHost): Promise<Machine> {
  const rejections = new Map<number, JSValueHandle>();
  let memory: { readonly buffer: ArrayBufferLike } = { buffer: new ArrayBuffer(0) };
  const vm = await QuickJS.create({
    wasm: engine.module as never,
    memoryLimit: engine.memoryBytes - reservedMemoryBytes,
    maxStackSize: engineStackBytes,
    timezoneOffset: 0,
    // The engine itself prints nothing.
    wasi: (given: { readonly buffer: ArrayBufferLike }) => {
      memory = given;
      return { fd_write: () => 0 };
    },
    moduleLoader: {
      load: () => {
        const refusal = new Error("Programs in wasm cannot import: they have no modules");
        // The program would see it, with paths of this host.
        refusal.stack = "";
        throw refusal;
      },
    },
    onUnhandledRejection: (promise: JSValueHandle, reason: JSValueHandle, isHandled: boolean) => {
      if (isHandled) rejections.delete(promise.identity);
      else if (rejections.size < maxRejections) rejections.set(promise.identity, reason.dup());
    },
  });
  const install = vm.evalCode(`(${installer})`, "<runtime>");
  const hostSide = hostFunctions(vm, host);
  const bounds: GuestBounds = { maxRequestsAtOnce, maxTimers, maxArgsDepth: maxValueDepth };
  const made = vm.callFunction(install, vm.undefined, hostSide, vm.hostToHandle(bounds));
  const guest = {
    ...{ answer: made.getProp("answer"), fire: made.getProp("fire") },
    ...{ encode: made.getProp("encode"), describe: made.getProp("describe") },
  };
  return { vm, memoryBytes: engine.memoryBytes, memory, guest, rejections };
}

/** The text of a function that makes the guest. */
const installer = `(host, bounds) => {
  const encode = (${makeEncode.toString()})();
  const isOutOfMemory = (${takeEngineErrors.toString()})();
  const describe = (${makeDescribe.toString()})(encode, isOutOfMemory);
  const tools = (${makeTools.toString()})(host.request, bounds, encode);
  return (${makeGuest.toString()})(host, bounds, { encode, describe }, tools);
}`;

/** An object of functions for the guest. They take what the program gives them. */
function hostFunctions(vm: QuickJS, host: GuestHost): JSValueHandle {
  const functions = vm.newObject();
  const add = (name: string, action: (...values: JSValueHandle[]) => void): void => {
    using made = vm.newFunction(name, (...values) => {
      try {
        action(...values);
      } catch {
        // The program would see its stack, with paths of this host.
      }
      return vm.undefined;
    });
    vm.setProp(functions, name, made);
  };
  add("write", (stream, text) =>
    host.write(textOf(stream) === "stderr" ? "stderr" : "stdout", textOf(text)),
  );
  add("request", (id, type, payload) => host.request(numberOf(id), textOf(type), textOf(payload)));
  add("startTimer", (id, delayMs) => host.startTimer(numberOf(id), numberOf(delayMs)));
  add("stopTimer", (id) => host.stopTimer(numberOf(id)));
  return functions;
}

// Other kinds are not converted: that would run the program's code.

function textOf(value: JSValueHandle | undefined): string {
  return value?.isString === true ? value.toString() : "";
}

function numberOf(value: JSValueHandle | undefined): number {
  return value?.isNumber === true ? value.toNumber() : 0;
}
