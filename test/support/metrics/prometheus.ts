/**
 * A real Prometheus that scrapes workers by the configuration and the rules of deploy/, with short
 * intervals.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, vi } from "vitest";
import { parse, stringify } from "yaml";
import { freePorts } from "../brokers/rabbitmq-ports.ts";
import { patience } from "../patience.ts";
import { configPath, rulesPath } from "./deployed.ts";

/** A series of an answer. */
export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

/** An alert as /api/v1/alerts has it. */
export interface ActiveAlert {
  readonly labels: Readonly<Record<string, string>>;
  readonly state: "pending" | "firing";
}

/** Disposing ends it, and removes what it keeps. */
export interface Prometheus extends AsyncDisposable {
  /** The series of an expression at present. Rejects for one that it refuses. */
  query(expression: string): Promise<readonly Series[]>;
  alerts(): Promise<readonly ActiveAlert[]>;
}

/** Seconds that a condition lasts before its alert fires. */
const holdSeconds = 3;

interface ScrapeConfig {
  global: object;
  scrape_configs: { static_configs: { targets: readonly string[] }[] }[];
}

/**
 * Writes both files for these targets, as `host:port`, into a directory: Prometheus looks every
 * second, and alerts wait for seconds instead of minutes. The path of the configuration.
 */
async function writeFiles(directory: string, targets: readonly string[]): Promise<string> {
  const config = parse(await readFile(configPath, "utf8")) as ScrapeConfig;
  config.global = { scrape_interval: "1s", evaluation_interval: "1s" };
  config.scrape_configs[0]!.static_configs = [{ targets }];
  const path = join(directory, "prometheus.yaml");
  await writeFile(path, stringify(config));
  const rules = await readFile(rulesPath, "utf8");
  const shortened = rules.replaceAll(/^( +for: )\d+m$/gm, `$1${holdSeconds}s`);
  await writeFile(join(directory, "rules.yaml"), shortened);
  return path;
}

/** Starts it. The caller owns it. */
export async function startPrometheus(
  program: string,
  targets: readonly string[],
): Promise<Prometheus> {
  await using owned = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "str-prometheus-"));
  owned.defer(() => rm(directory, { recursive: true, force: true }));
  const config = await writeFiles(directory, targets);
  const [port] = await freePorts(1);
  const options = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(directory, "data")}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  const child = spawn(program, options, { stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  child.stderr.on("data", (chunk: Buffer) => (log += chunk.toString()));
  const ended = once(child, "close");
  owned.defer(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const get = (path: string) => fetch(`http://127.0.0.1:${port}${path}`);
  const isReady = async () => expect((await get("/-/ready")).status, log).toBe(200);
  await vi.waitFor(isReady, patience);
  const all = owned.move();
  return {
    async query(expression) {
      const { result } = await dataOf<{ result: readonly Series[] }>(
        await get(`/api/v1/query?${new URLSearchParams({ query: expression }).toString()}`),
      );
      return result;
    },
    async alerts() {
      const { alerts } = await dataOf<{ alerts: readonly ActiveAlert[] }>(
        await get("/api/v1/alerts"),
      );
      return alerts;
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview */
async function dataOf<Data>(response: Response): Promise<Data> {
  const answer = (await response.json()) as { data?: Data; error?: string };
  if (answer.data === undefined) throw new Error(`${response.status} ${answer.error}`);
  return answer.data;
}
