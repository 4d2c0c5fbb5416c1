/**
 * Contexts of traces as text, and which traces are recorded.
 */
import { describe, expect } from "vitest";
import { readTraceparent, traceIdOf } from "../../../../worker/protocol/trace-context.ts";
import { samplerNames, samplerOf } from "../../../../worker/telemetry/tracing/sampler.ts";
import {
  formatTraceparent,
  newSpanId,
  newTraceId,
  parseTraceparent,
} from "../../../../worker/telemetry/tracing/trace-context.ts";
import { fc, test } from "../../../support/properties/property.ts";

const hex = (digits: number) =>
  fc.stringMatching(new RegExp(`^[0-9a-f]{${digits}}$`)).filter((id) => /[^0]/.test(id));

describe("a trace context", () => {
  test.prop([hex(32), hex(16), fc.boolean()])(
    "is written as the protocol accepts it, and read as it was",
    (traceId, spanId, isSampled) => {
      const traceparent = formatTraceparent({ traceId, spanId, isSampled });
      expect(readTraceparent({ traceparent })).toBe(traceparent);
      expect(parseTraceparent(traceparent)).toEqual({ traceId, spanId, isSampled });
      expect(traceIdOf(traceparent)).toBe(traceId);
    },
  );

  test.for([
    ["03", true],
    ["02", false],
    ["ff", true],
  ] as const)("with the flags %s has sampled %s", ([flags, isSampled]) => {
    const text = `cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-${flags}`;
    expect(parseTraceparent(text).isSampled).toBe(isSampled);
  });

  test("of new ids is valid", () => {
    const text = formatTraceparent({
      traceId: newTraceId(),
      spanId: newSpanId(),
      isSampled: false,
    });
    expect(readTraceparent({ traceparent: text })).toBe(text);
  });
});

describe("a sampler", () => {
  const low = "0".repeat(31) + "1";
  const high = "f".repeat(32);
  const half = `${"0".repeat(18)}8${"0".repeat(13)}`;
  const sampled = { traceId: low, spanId: "1".repeat(16), isSampled: true };
  const unsampled = { ...sampled, isSampled: false };

  test.for(samplerNames.filter((name) => name.startsWith("parentbased_")))(
    "%s does as the caller does",
    (name) => {
      expect(samplerOf(name, 0.5)(low, sampled)).toBe(true);
      expect(samplerOf(name, 0.5)(high, unsampled)).toBe(false);
    },
  );

  test.for([
    ["always_on", 0, low, true],
    ["parentbased_always_on", 0, low, true],
    ["always_off", 1, high, false],
    ["parentbased_always_off", 1, high, false],
    ["traceidratio", 0, high, false],
    ["traceidratio", 1, low, true],
    ["traceidratio", 0.5, half, true],
    ["traceidratio", 0.49, half, false],
    ["parentbased_traceidratio", 0.5, low, false],
    ["parentbased_traceidratio", 0.5, high, true],
  ] as const)("%s of %d records the trace %s: %s", ([name, ratio, traceId, isRecorded]) => {
    expect(samplerOf(name, ratio)(traceId, undefined)).toBe(isRecorded);
  });

  test("that is not by parents does not ask the caller", () => {
    expect(samplerOf("always_on", 1)(low, unsampled)).toBe(true);
    expect(samplerOf("always_off", 1)(low, sampled)).toBe(false);
  });
});
