/**
 * The page `/metrics` of a worker, as a scraper reads it.
 */

/** Values by name and labels, as the page has them: `str_x_total{tool="t"}`. */
export type MetricValues = Readonly<Record<string, number>>;

/** Reads the page over HTTP. Throws for a line that is neither a comment nor a value. */
export async function fetchMetrics(port: number): Promise<MetricValues> {
  return parseMetrics(await fetchMetricsText(port));
}

/** The page as it is. */
export async function fetchMetricsText(port: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  const text = await response.text();
  const type = response.headers.get("content-type");
  if (response.status !== 200 || type !== "text/plain; version=0.0.4; charset=utf-8")
    throw new Error(`${response.status} ${type}: ${text}`);
  return text;
}

/** https://prometheus.io/docs/instrumenting/exposition_formats, as far as a worker uses it. */
export function parseMetrics(text: string): MetricValues {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("# "));
  return Object.fromEntries(
    lines.map((line) => {
      const [, name, value] = /^([a-z_]+(?:\{.*\})?) ([\d.e+-]+)$/.exec(line) ?? [];
      if (name === undefined || Number.isNaN(Number(value)))
        throw new Error(`not a value: ${line}`);
      return [name, Number(value)];
    }),
  );
}

/** The values of one tool, without its label. */
export function valuesOf(tool: string, values: MetricValues): MetricValues {
  const label = `tool="${tool}"`;
  return Object.fromEntries(
    Object.entries(values)
      .filter(([name]) => name.includes(label))
      .map(([name, value]) => [name.replace(`{${label}}`, "").replace(`${label},`, ""), value]),
  );
}
