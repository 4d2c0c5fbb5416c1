/**
 * Serves a store's double for trials, until a signal ends it.
 */
import { once } from "node:events";
import { CommandError, type Context, exit } from "../context.ts";

/** A double, and how to use it. */
export interface FakeStore<Server extends AsyncDisposable & { readonly endpoint: string }> {
  /** What it is, for people. */
  readonly title: string;
  readonly port: number;
  /** Rejects with the system's error. */
  start(port: number): Promise<Server>;
  /** The variables for worker and harness. */
  variablesOf(server: Server): Readonly<Record<string, string>>;
}

/**
 * Serves on loopback until the context's signal; that is its regular end. Throws CommandError when
 * it cannot listen.
 */
export async function serveFakeStore<
  Server extends AsyncDisposable & { readonly endpoint: string },
>(store: FakeStore<Server>, { out, signal }: Context): Promise<number> {
  await using server = await listen(store);
  out.line(
    `${store.title} listens on ${server.endpoint}; its objects end with it. For worker and harness:`,
  );
  for (const [name, value] of Object.entries(store.variablesOf(server)))
    out.line(`export ${name}=${value}`);
  if (!signal.aborted) await once(signal, "abort");
  return exit.success;
}

/** Throws CommandError when the port cannot be listened on. */
async function listen<Server extends AsyncDisposable & { readonly endpoint: string }>({
  port,
  start,
}: FakeStore<Server>): Promise<Server> {
  try {
    return await start(port);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    const hint = code === "EADDRINUSE" ? "; port 0 takes a free one" : "";
    throw new CommandError(`cannot listen on 127.0.0.1:${port}: ${code}${hint}`, { cause: error });
  }
}
