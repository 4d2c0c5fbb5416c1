/**
 * A real RabbitMQ of a test's own: on loopback ports, with a directory, a node name and a port
 * mapper (epmd) of its own, so that any number can run at once and none is left behind.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { quickPlace } from "../sandboxes/quick-place.ts";
import { freePorts } from "./rabbitmq-ports.ts";

const run = promisify(execFile);

/** Debian's scripts themselves: what is on the path changes to the user of the service first. */
const programs = "/usr/lib/rabbitmq/bin";
const server = `${programs}/rabbitmq-server`;
const control = `${programs}/rabbitmqctl`;
const epmd = "/usr/bin/epmd";

/** Directory tree of a Debian with the RabbitMQ that is to be used; empty for the machine's own. */
const root = process.env["RABBITMQ_TEST_ROOT"] ?? "";

/**
 * Milliseconds a node may take to start, for hooks: some seconds, and many on a machine that is
 * busy.
 */
export const startTimeoutMs = 120_000;

/** Starts of a node, in case that somebody else took one of its ports meanwhile. */
const maxStarts = 3;

/** What the node says when it takes connections. */
const readyLine = /Server startup complete/;

/** Lines of output kept for the case that it does not start. */
const keptLines = 60;

/** Why there can be no RabbitMQ here, or undefined when there can. */
export function rabbitmqProblem(): string | undefined {
  const missing = [server, epmd].map((file) => root + file).find((file) => !existsSync(file));
  return missing && `RabbitMQ is not installed: ${missing} (Debian package rabbitmq-server)`;
}

/** How a node is configured beside what keeps it to itself. */
export interface RabbitMQOptions {
  /** Lines of rabbitmq.conf. */
  readonly settings?: readonly string[];
  readonly plugins?: readonly string[];
  /** Files of its TLS listener; without them there is none. */
  readonly tls?: { readonly ca: string; readonly cert: string; readonly key: string };
}

/** Where a node is: what other processes need to use it. */
export interface RabbitMQPlace {
  readonly directory: string;
  readonly port: number;
  /** Undefined without TLS. */
  readonly tlsPort: number | undefined;
  readonly distributionPort: number;
  readonly epmdPort: number;
}

/** A running node, for those who use it. */
export interface RabbitMQ {
  readonly port: number;
  /** Undefined without TLS. */
  readonly tlsPort: number | undefined;
  /** For user `guest`, virtual host `/`. */
  readonly url: string;
  /** Runs rabbitmqctl, which takes over a second of processor time; returns what it says. */
  control(...args: readonly string[]): Promise<string>;
  /** Ends every connection, as an operator would. */
  closeAllConnections(): Promise<void>;
}

/** A running node, for its owner. Disposing ends it and removes everything of it. */
export interface OwnRabbitMQ extends RabbitMQ, AsyncDisposable {
  readonly place: RabbitMQPlace;
  /** Ends the node in good order. What is durable is there after `start`. */
  stop(): Promise<void>;
  /** Starts the node after `stop`; resolves when it takes connections. */
  start(): Promise<void>;
}

/** Starts a node; takes some seconds, so share it between the tests of a file. */
export async function startRabbitMQ(options: RabbitMQOptions = {}): Promise<OwnRabbitMQ> {
  for (let attempt = 1; ; attempt++) {
    await using stack = new AsyncDisposableStack();
    const node = stack.use(await Node.create(options));
    try {
      await node.start();
      stack.move();
      return node;
    } catch (error) {
      const isTaken = error instanceof Error && /eaddrinuse|already in use/i.test(error.message);
      if (!isTaken || attempt === maxStarts) throw error;
    }
  }
}

/** A node that runs, seen from any process of this user. */
export class RabbitMQUser implements RabbitMQ {
  readonly place: RabbitMQPlace;
  protected readonly environment: NodeJS.ProcessEnv;

  constructor(place: RabbitMQPlace) {
    this.place = place;
    this.environment = environmentOf(place);
  }

  get port(): number {
    return this.place.port;
  }

  get tlsPort(): number | undefined {
    return this.place.tlsPort;
  }

  get url(): string {
    return `amqp://guest:guest@127.0.0.1:${this.port}`;
  }

  async control(...args: readonly string[]): Promise<string> {
    const [file, ...given] = inRoot(control, "--quiet", ...args);
    const { stdout } = await run(file, given, {
      env: this.environment,
      cwd: this.place.directory,
    });
    return stdout;
  }

  async closeAllConnections(): Promise<void> {
    await this.control("close_all_connections", "closed by a test");
  }
}

class Node extends RabbitMQUser implements OwnRabbitMQ {
  #portMapper: ChildProcess | undefined;
  #process: ChildProcess | undefined;

  static async create(options: RabbitMQOptions): Promise<Node> {
    const directory = await mkdtemp(join(quickPlace, "str-rabbitmq-"));
    const ports = await freePorts(4);
    const [port, tlsPort, distributionPort, epmdPort] = ports as [number, number, number, number];
    const node = new Node({
      directory,
      port,
      tlsPort: options.tls && tlsPort,
      distributionPort,
      epmdPort,
    });
    await mkdir(join(directory, "data"));
    await writeFile(join(directory, "rabbitmq.conf"), node.#configuration(options));
    const plugins = (options.plugins ?? []).join(",");
    await writeFile(join(directory, "enabled_plugins"), `[${plugins}].`);
    return node;
  }

  async start(): Promise<void> {
    await this.#startPortMapper();
    // Sent when this process dies without having disposed of the node; the script stops the node
    // then.
    const [file, ...args] = endingWithUs("TERM", server);
    const child = spawn(file, args, {
      env: this.environment,
      cwd: this.place.directory,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#process = child;
    await says(child, readyLine);
  }

  async stop(): Promise<void> {
    await end(this.#process, "SIGTERM");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Nobody needs what it would still write.
    await end(this.#process, "SIGKILL");
    await end(this.#portMapper, "SIGKILL");
    await rm(this.place.directory, { recursive: true, force: true, maxRetries: 5 });
  }

  #configuration({ settings = [], tls }: RabbitMQOptions): string {
    const own = [
      `listeners.tcp.local = 127.0.0.1:${this.port}`,
      "log.console.level = info",
      "disk_free_limit.absolute = 1MB",
    ];
    const encrypted = tls && [
      `listeners.ssl.local = 127.0.0.1:${this.tlsPort}`,
      `ssl_options.cacertfile = ${tls.ca}`,
      `ssl_options.certfile = ${tls.cert}`,
      `ssl_options.keyfile = ${tls.key}`,
      "ssl_options.verify = verify_peer",
      "ssl_options.fail_if_no_peer_cert = false",
    ];
    return `${[...own, ...(encrypted ?? []), ...settings].join("\n")}\n`;
  }

  /** A child of ours, since the one that a node starts for itself outlives the node. */
  async #startPortMapper(): Promise<void> {
    if (this.#portMapper !== undefined) return;
    const where = ["-port", String(this.place.epmdPort), "-address", "127.0.0.1"];
    const [file, ...args] = endingWithUs("KILL", epmd, ...where, "-d", "-d");
    const mapper = spawn(file, args, {
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#portMapper = mapper;
    await says(mapper, /entering the main select\(\) loop/);
  }
}

function environmentOf({ directory, port, ...place }: RabbitMQPlace): NodeJS.ProcessEnv {
  const loopbackOnly = "-kernel inet_dist_use_interface {127,0,0,1}";
  // A scheduler that waits without spinning leaves the processor to the tests.
  const calm = "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none";
  return {
    PATH: process.env["PATH"],
    // Its cookie, which lets the two programs talk to each other, is here.
    HOME: directory,
    LANG: "C.UTF-8",
    RABBITMQ_NODENAME: `str-${port}@localhost`,
    RABBITMQ_CONF_ENV_FILE: join(directory, "none"),
    RABBITMQ_CONFIG_FILE: join(directory, "rabbitmq.conf"),
    RABBITMQ_ADVANCED_CONFIG_FILE: join(directory, "none"),
    RABBITMQ_GENERATED_CONFIG_DIR: join(directory, "generated"),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(directory, "enabled_plugins"),
    RABBITMQ_MNESIA_BASE: join(directory, "data"),
    RABBITMQ_LOG_BASE: join(directory, "log"),
    RABBITMQ_LOGS: "-",
    RABBITMQ_PID_FILE: join(directory, "pid"),
    RABBITMQ_DIST_PORT: String(place.distributionPort),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: `${loopbackOnly} ${calm}`,
    RABBITMQ_CTL_ERL_ARGS: loopbackOnly,
    ERL_EPMD_ADDRESS: "127.0.0.1",
    ERL_EPMD_PORT: String(place.epmdPort),
  };
}

type Command = readonly [file: string, ...args: string[]];

/**
 * The command with the tree of `RABBITMQ_TEST_ROOT` as its file system, but for what it shares with
 * this process.
 */
function inRoot(...command: Command): Command {
  if (root === "") return command;
  const shared = ["/dev", "/proc", "/etc/hosts", quickPlace];
  const binds = shared.flatMap((path) => ["--dev-bind", path, path]);
  return ["bwrap", "--bind", root, "/", ...binds, "--", ...command];
}

/**
 * The command, sent this signal when this process dies. Whatever starts it on the way dies of that
 * as well.
 */
function endingWithUs(signal: "TERM" | "KILL", ...command: Command): Command {
  const setpriv: Command = ["setpriv", "--pdeathsig", signal, "--"];
  return root === "" ? [...setpriv, ...command] : [...setpriv, ...inRoot(...setpriv, ...command)];
}

/** Waits for a line of output. Rejects with the last lines when the program ends before. */
async function says(child: ChildProcess, wanted: RegExp): Promise<void> {
  const lines: string[] = [];
  const said = Promise.withResolvers<void>();
  for (const input of [child.stdout!, child.stderr!]) {
    // Read to the end, or the program would wait for a reader.
    createInterface({ input }).on("line", (line) => {
      lines.push(line);
      if (lines.length > keptLines) lines.shift();
      if (wanted.test(line)) said.resolve();
    });
  }
  child.once("error", (error) => said.reject(error));
  child.once("close", (code) => {
    said.reject(new Error(`${child.spawnargs.join(" ")} ended (${code}):\n${lines.join("\n")}`));
  });
  await said.promise;
}

/** Signals a program and all that it started, and waits for its end. */
async function end(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, "close");
  process.kill(-child.pid, signal);
  await closed;
}
