/**
 * OpenTelemetry's variables, as a worker reads them.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ConfigError, readConfig } from "../../../worker/config/config.ts";

const required = { SAM_NAMESPACE: "n", DEV_BROKER_HOST: "127.0.0.1" };
const on = { ...required, OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };

function problemsOf(environment: Readonly<Record<string, string>>): readonly string[] {
  try {
    readConfig(environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe("traces", () => {
  test("go to a collector, by limits that OpenTelemetry has", () => {
    expect(readConfig(on).tracing).toEqual({
      environment: { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" },
      sampler: { name: "parentbased_always_on", ratio: 1 },
      batch: {
        scheduledDelayMillis: 5_000,
        exportTimeoutMillis: 30_000,
        maxQueueSize: 2_048,
        maxExportBatchSize: 512,
      },
    });
  });

  test("have samplers, and variables that the exporter alone reads", () => {
    const tracing = readConfig({
      ...required,
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://collector/v1/traces",
      OTEL_EXPORTER_OTLP_CERTIFICATE: "/etc/ca.pem",
      OTEL_TRACES_SAMPLER: "traceidratio",
      OTEL_TRACES_SAMPLER_ARG: ".25",
      OTEL_BSP_MAX_QUEUE_SIZE: "10",
    }).tracing;
    expect(tracing?.environment).toHaveProperty("OTEL_EXPORTER_OTLP_CERTIFICATE", "/etc/ca.pem");
    expect(tracing?.environment).not.toHaveProperty("SAM_NAMESPACE");
    expect(tracing?.sampler).toEqual({ name: "traceidratio", ratio: 0.25 });
    expect(tracing?.batch.maxQueueSize).toBe(10);
  });

  test.each([
    [{}, required],
    [{ OTEL_TRACES_EXPORTER: "none" }, on],
    [{ OTEL_SDK_DISABLED: "true" }, on],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "" }, on],
  ])("are off with %o", (changes, environment) => {
    expect(readConfig({ ...environment, ...changes }).tracing).toBeUndefined();
  });

  test("take headers from a file", async () => {
    const directory = await mkdtemp(join(tmpdir(), "headers-"));
    const file = join(directory, "headers");
    await writeFile(file, "authorization=Bearer%20hush\n");
    const { tracing } = readConfig({ ...on, OTEL_EXPORTER_OTLP_HEADERS_FILE: file });
    await rm(directory, { recursive: true });
    expect(tracing?.environment).toMatchObject({
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20hush",
    });
  });
});

test.each([
  ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"],
  ["OTEL_EXPORTER_OTLP_HEADERS", "hush"],
  ["OTEL_TRACES_SAMPLER", "jaeger_remote"],
  ["OTEL_TRACES_SAMPLER_ARG", "1.5"],
  ["OTEL_TRACES_EXPORTER", "zipkin"],
  ["OTEL_SDK_DISABLED", "yes"],
  ["OTEL_BSP_MAX_QUEUE_SIZE", "0"],
  ["OTEL_EXPORTER_OTLP_TIMEOUT", "-1"],
])("%s=%s is refused", (name, value) => {
  expect(problemsOf({ ...on, [name]: value })).toEqual([
    expect.stringMatching(new RegExp(`^${name}: .+ is not accepted; accepted: `)) as string,
  ]);
});

test("no problem repeats a header or an address, which may hold a password", () => {
  const secrets = { OTEL_EXPORTER_OTLP_HEADERS: "hush", OTEL_EXPORTER_OTLP_ENDPOINT: "u:hush@x" };
  expect(problemsOf({ ...required, ...secrets }).join()).not.toContain("hush");
});

describe("a protocol that the worker does not have", () => {
  test("is refused", () => {
    expect(problemsOf({ ...on, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" })).toEqual([
      'OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not accepted; accepted: http/protobuf',
    ]);
  });

  test("is ignored while there are no traces, or those have another", () => {
    expect(problemsOf({ ...required, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" })).toEqual([]);
    const both = { ...on, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" };
    const own = { OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/protobuf" };
    expect(problemsOf({ ...both, ...own })).toEqual([]);
  });
});
