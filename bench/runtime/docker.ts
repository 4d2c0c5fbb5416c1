/**
 * The docker backend of the library, and the container of its executions by the Engine API alone.
 */
import { openDockerd } from "../../test/support/containers/daemon.ts";
import {
  type JsonObject,
  type RuntimeBackend,
  createFunctionGateway,
  openDocker,
} from "../../worker/runtime.ts";
import { type BareContainer, openBareContainer } from "./bare-container.ts";
import { Engine, type Inspected } from "./engine.ts";

/** What the rows of containers need. The caller disposes it. */
export interface DockerParts extends AsyncDisposable {
  readonly backend: RuntimeBackend;
  readonly technology: string;
  /** The container of `code`, in Python. */
  readonly container: BareContainer;
  /** Fulfils when the engine has no container. */
  quiet(): Promise<void>;
}

/** Why there is no engine here. */
export class NoDocker extends Error {
  constructor(message: string) {
    super(message);
    this.name = "NoDocker";
  }
}

/** Starts Debian's daemon. Rejects with NoDocker. */
export async function openDockerParts(code: string): Promise<DockerParts> {
  await using stack = new AsyncDisposableStack();
  const daemon = stack.use(await openDockerd({ skip }));
  const backend = stack.use(
    await openDocker({ languages: ["python"], variables: { DOCKER_SOCKET: daemon.socket } }),
  );
  const engine = new Engine(daemon.socket);
  const { inspected, technology } = await inspectExecution(backend, engine);
  const container = stack.use(await openBareContainer(engine, inspected, code));
  const owned = stack.move();
  return {
    ...{ backend, technology, container },
    quiet: () => engine.empty(),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The container of an execution, as the engine describes it while the code waits for a tool. */
async function inspectExecution(
  backend: RuntimeBackend,
  engine: Engine,
): Promise<{ readonly inspected: Inspected; readonly technology: string }> {
  let inspected: Inspected | undefined;
  const inspect = async (): Promise<JsonObject> => {
    inspected = await engine.inspectOnly();
    return {};
  };
  const gateway = createFunctionGateway([
    { id: "bench:inspect", description: "Inspects its caller's container.", run: inspect },
  ]);
  const code = "await tools.bench.inspect()";
  const { backend: info } = await backend.execute({ code, profile: "standard", gateway });
  if (inspected === undefined) throw new Error("the code has not called its tool");
  return { inspected, technology: info.details["technology"] as string };
}

/** In place of a test's: there is no test to skip. */
function skip(note?: string): never;
function skip(condition: boolean, note?: string): void;
function skip(first?: boolean | string, note = ""): void {
  if (typeof first === "boolean" && !first) return;
  throw new NoDocker(typeof first === "string" ? first : note);
}
