/**
 * OpenTelemetry's variables of traces, and the configuration of tracing.
 */
import { z } from "zod";
import type { TracingConfig } from "../telemetry/tracing/open.ts";
import { samplerNames } from "../telemetry/tracing/sampler.ts";
import type { Environment } from "./variable-aliases.ts";
import { optional, secret, text, wholeNumber, withDefault } from "./variable-kinds.ts";

const prefix = "OTEL_";
const endpoint = z.string().regex(/^https?:\/\/\S+$/);
const headers = z.string().regex(/^[^=,\s]+=[^,]*(?:,\s*[^=,\s]+=[^,]*)*$/);
const someHeaders = "`name=value` with `,` between them, values with `%` escapes";
const url = "a URL with http:// or https://";
const milliseconds = wholeNumber(1, 3_600_000);
const someMilliseconds = "milliseconds, 1 to 3600000";
const count = wholeNumber(1, 100_000);
const someCount = "a whole number, 1 to 100000";
const ratio = z
  .string()
  .regex(/^(?:0(?:\.\d+)?|\.\d+|1(?:\.0+)?)$/)
  .transform(Number);

const protocol = "http/protobuf";
const protocolVariables = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];

/** In the order of the documentation. */
export const tracingVariables = {
  OTEL_EXPORTER_OTLP_ENDPOINT: secret(
    endpoint,
    url,
    "Collector of [traces](operate.md#traces): `/v1/traces` below it. Unset: none.",
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: secret(
    endpoint,
    url,
    "Exact address of the collector of traces, in place of the former.",
  ),
  OTEL_EXPORTER_OTLP_HEADERS: secret(
    headers,
    someHeaders,
    "Headers of requests to the collector, such as its key.",
  ),
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: secret(headers, someHeaders, "Further ones, for traces."),
  OTEL_EXPORTER_OTLP_PROTOCOL: optional(
    text,
    protocol,
    `\`${protocol}\` is the only one that the worker has.`,
  ),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: optional(text, protocol, "The same, for traces."),
  OTEL_EXPORTER_OTLP_TIMEOUT: withDefault(
    milliseconds,
    someMilliseconds,
    "10000",
    "Time for an export with its retries.",
  ),
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: optional(
    milliseconds,
    someMilliseconds,
    "The same, for traces.",
  ),
  OTEL_SERVICE_NAME: optional(
    text.min(1),
    "a name",
    "The attribute `service.name` of traces. Unset: that of `OTEL_RESOURCE_ATTRIBUTES`, else `secure-tool-runtime`.",
  ),
  OTEL_RESOURCE_ATTRIBUTES: optional(
    text.regex(/^[^=,]+=[^=,]*(?:,[^=,]+=[^=,]*)*$/),
    "`name=value` with `,` between them, with `%` escapes",
    "Attributes of all spans.",
  ),
  OTEL_TRACES_SAMPLER: withDefault(
    z.enum(samplerNames),
    `one of ${samplerNames.join(", ")}`,
    "parentbased_always_on",
    "Which calls are traced. `parentbased_`: those that their caller traces; the rest of the name counts for calls without a `traceparent`.",
  ),
  OTEL_TRACES_SAMPLER_ARG: withDefault(
    ratio,
    "a number, 0 to 1",
    "1",
    "Part of the calls that samplers with `traceidratio` trace.",
  ),
  OTEL_BSP_SCHEDULE_DELAY: withDefault(
    milliseconds,
    someMilliseconds,
    "5000",
    "Time between two exports.",
  ),
  OTEL_BSP_EXPORT_TIMEOUT: withDefault(
    milliseconds,
    someMilliseconds,
    "30000",
    "Time for one batch.",
  ),
  OTEL_BSP_MAX_QUEUE_SIZE: withDefault(
    count,
    someCount,
    "2048",
    "Spans that wait for their export; further ones are dropped.",
  ),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: withDefault(
    count,
    someCount,
    "512",
    "Spans of one batch, at most the former.",
  ),
  OTEL_TRACES_EXPORTER: withDefault(
    z.enum(["otlp", "none"]),
    "one of otlp, none",
    "otlp",
    "`none` switches tracing off.",
  ),
  OTEL_SDK_DISABLED: withDefault(
    z.enum(["true", "false"]),
    "true or false",
    "false",
    "`true` switches tracing off, too.",
  ),
};

type TracingValues = z.infer<z.ZodObject<typeof tracingVariables>>;

/** Problems with the combination of the variables, one line each. */
export function tracingProblems(environment: Environment): readonly string[] {
  // Variables of a whole cluster may name another protocol for others.
  if (!isOn(environment)) return [];
  const name = protocolVariables.find((variable) => environment[variable] !== undefined);
  if (name === undefined || environment[name] === protocol) return [];
  return [`${name}: ${JSON.stringify(environment[name])} is not accepted; accepted: ${protocol}`];
}

/**
 * Undefined without tracing.
 *
 * @param environment with further variables of the exporter, and with what secret files hold
 */
export function tracingConfig(
  values: TracingValues,
  environment: Environment,
): TracingConfig | undefined {
  if (!isOn(environment)) return undefined;
  const own = Object.entries(environment).flatMap(([name, value]) =>
    name.startsWith(prefix) && value !== undefined ? [[name, value] as const] : [],
  );
  return {
    environment: Object.fromEntries(own),
    sampler: { name: values.OTEL_TRACES_SAMPLER, ratio: values.OTEL_TRACES_SAMPLER_ARG },
    batch: {
      scheduledDelayMillis: values.OTEL_BSP_SCHEDULE_DELAY,
      exportTimeoutMillis: values.OTEL_BSP_EXPORT_TIMEOUT,
      maxQueueSize: values.OTEL_BSP_MAX_QUEUE_SIZE,
      maxExportBatchSize: values.OTEL_BSP_MAX_EXPORT_BATCH_SIZE,
    },
  };
}

function isOn({
  OTEL_EXPORTER_OTLP_ENDPOINT: general,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: ofTraces,
  OTEL_TRACES_EXPORTER: exporter,
  OTEL_SDK_DISABLED: disabled,
}: Environment): boolean {
  return (ofTraces ?? general) !== undefined && exporter !== "none" && disabled !== "true";
}
