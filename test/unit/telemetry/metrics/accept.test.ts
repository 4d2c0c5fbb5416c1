/**
 * The format of the page of metrics, by the reader's preferences.
 */
import { describe, expect, test } from "vitest";
import { qualityOf } from "../../../../worker/telemetry/metrics/accept.ts";
import { exposition } from "../../../../worker/telemetry/metrics/exposition.ts";
import { noSamples } from "../../../support/metrics/no-samples.ts";

const makePage = exposition(noSamples);
const formatFor = async (accept?: string) =>
  (await makePage(accept)).contentType.startsWith("application/openmetrics-text") ? "open" : "text";

/** Of Prometheus 2.42 and 3.0, and of the latter where text is configured first. */
const headers = {
  second:
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
  third:
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
  text: "text/plain;version=0.0.4;q=0.5,application/openmetrics-text;version=1.0.0;q=0.4,*/*;q=0.1",
};

describe("the page of metrics is in OpenMetrics", () => {
  test.each([
    headers.second,
    headers.third,
    "application/openmetrics-text",
    "application/*",
    "Application/OpenMetrics-Text ; Q=0.5 , text/*; q=0.499",
    "*/*, text/plain;q=0",
    "text/plain;q=0.9;version=0.0.4, application/openmetrics-text",
  ])("for %j", async (accept) => {
    expect(await formatFor(accept)).toBe("open");
  });
});

describe("the page of metrics is text", () => {
  test.each([
    undefined,
    "",
    "*/*",
    headers.text,
    "text/plain",
    "application/json",
    "application/openmetrics-text;q=0",
    "application/openmetrics-text;q=0, */*",
    "application/openmetrics-text;q=0.5, */*",
    "application/openmetrics-textual",
    "text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8",
    ",;,q=1",
  ])("for %j", async (accept) => {
    expect(await formatFor(accept)).toBe("text");
  });
});

test("a weight that is none counts as 1, and the highest of equal ranges counts", () => {
  expect(qualityOf("text/plain", "text/plain;q=2")).toBe(1);
  expect(qualityOf("text/plain", "text/plain;q=0.12345")).toBe(1);
  expect(qualityOf("text/plain", "text/plain;q=0.1, text/plain;q=0.3;v=2")).toBe(0.3);
  expect(qualityOf("text/plain", "text/*;q=0.1, */*;q=0.9")).toBe(0.1);
});
