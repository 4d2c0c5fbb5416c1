/**
 * Keeps the rules and the dashboard of deploy/ true: their metrics and labels are those of the
 * catalogue, and each alert has its section in the runbook.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { errorCodeFacts } from "../../../../worker/protocol/errors.ts";
import { events } from "../../../../worker/telemetry/events.ts";
import { type MetricName, metrics } from "../../../../worker/telemetry/metrics/catalog.ts";
import type { MetricFacts } from "../../../../worker/telemetry/metrics/catalog/facts.ts";
import {
  type MetricLabel,
  metricLabels,
} from "../../../../worker/telemetry/metrics/catalog/labels.ts";
import {
  alerts,
  configPath,
  dashboard,
  queries,
  recordings,
  ruleFile,
} from "../../../support/metrics/deployed.ts";
import { namesIn } from "../../../support/metrics/promql.ts";

const root = join(import.meta.dirname, "../../../..");
const catalogue: Readonly<Record<string, MetricFacts>> = metrics;
/** Prometheus adds them. */
const ofTargets = ["job", "instance"];

/** Name in the catalogue, and labels, of a series; undefined for one that does not exist. */
function seriesOf(name: string): { metric?: MetricName; labels: readonly string[] } | undefined {
  if (name === "up") return { labels: ofTargets };
  if (recordings.some(({ record }) => record === name))
    return { labels: [...ofTargets, ...name.split(":")[0]!.split("_")] };
  const [, base = "", suffix] = /^(.*?)(_bucket|_sum|_count)?$/.exec(name)!;
  const facts = catalogue[base];
  const isHistogram = facts?.type === "histogram";
  if (facts === undefined || isHistogram !== (suffix !== undefined)) return undefined;
  const more = suffix === "_bucket" ? ["le"] : [];
  return { metric: base as MetricName, labels: [...ofTargets, ...facts.labels, ...more] };
}

/** Expressions, by where they are. */
const places = [
  ...alerts.map(({ alert: place, expr }) => ({ place, expr })),
  ...recordings.map(({ record: place, expr }) => ({ place, expr })),
  ...queries.map(({ title: place, expr }) => ({ place, expr })),
];
const expressions = places.map(({ expr }) => expr);

describe("an expression of deploy/", () => {
  test("is there", () => {
    expect([alerts.length > 10, recordings.length > 0, queries.length > 40]).not.toContain(false);
  });

  test.for(places)("names metrics and labels that exist: $place", ({ expr }) => {
    const { selected, grouping } = namesIn(expr);
    expect(selected).not.toEqual([]);
    const known = selected.map(({ metric, matchers }) => {
      const labels = seriesOf(metric)?.labels;
      expect(labels, metric).toBeDefined();
      for (const { label } of matchers) expect(labels, metric).toContain(label);
      return labels!;
    });
    for (const label of grouping) expect(known.flat()).toContain(label);
  });

  test.for(places)("compares labels with values that they can have: $place", ({ expr }) => {
    for (const { label, value } of namesIn(expr).selected.flatMap(({ matchers }) => matchers)) {
      // A protection that a host can lack has no list; Grafana puts in the value of a variable.
      if (label === "limit" || value.startsWith("$")) continue;
      const description = metricLabels[label as MetricLabel] ?? "`str-worker`";
      for (const one of value.split("|"))
        expect(description.includes(`\`${one}\``) || one in errorCodeFacts, one).toBe(true);
    }
  });

  test("takes the rate or the increase of counters, and of nothing else", () => {
    for (const expr of expressions)
      for (const [, name = ""] of expr.matchAll(/(?:rate|increase)\((\w+)/g)) {
        const { metric } = seriesOf(name)!;
        expect(["counter", "histogram"], name).toContain(catalogue[metric!]!.type);
      }
  });
});

describe("an alert", () => {
  const runbook = readFileSync(join(root, "docs/runbook.md"), "utf8");
  const sections = Array.from(runbook.matchAll(/^## (.*)$/gm), ([, title]) => title!);

  test("has its section in the runbook, and each section its alert", () => {
    expect(sections).toEqual(alerts.map(({ alert }) => alert));
  });

  test("sends its reader to log events and panels that exist", () => {
    const named = Array.from(runbook.matchAll(/`([a-z_]+\.[a-z_]+)`/g), ([, name]) => name!);
    const titles = Array.from(runbook.matchAll(/(?<!\*)\*([A-Z][^*]+)\*(?!\*)/g), ([, title]) =>
      title!.replaceAll("\n", " "),
    );
    expect([named.length > 10, titles.length > 5]).not.toContain(false);
    for (const name of named) expect(Object.keys(events)).toContain(name);
    const panels = dashboard.panels.map(({ title }) => title);
    for (const title of titles) expect(panels).toContain(title);
  });

  test.for(alerts)("$alert says what it is, and points to its section", (rule) => {
    expect(["critical", "warning"]).toContain(rule.labels["severity"]);
    expect(Object.keys(rule.annotations)).toEqual(["summary", "description", "runbook_url"]);
    expect(rule.annotations["runbook_url"]).toBe(`docs/runbook.md#${rule.alert.toLowerCase()}`);
  });

  test.for(alerts)("$alert tells labels that it has", ({ expr, annotations }) => {
    const { selected, grouping } = namesIn(expr);
    // What an expression sums up by, it has; else what its metric has.
    const summed = /^sum by/.test(expr) ? grouping : seriesOf(selected[0]!.metric)!.labels;
    for (const [, label] of Object.values(annotations)
      .join()
      .matchAll(/\$labels\.(\w+)/g))
      expect(summed).toContain(label);
  });

  test("is for the job that the example scrapes", () => {
    const config = parse(readFileSync(configPath, "utf8")) as {
      readonly scrape_configs: readonly { readonly job_name: string }[];
    };
    const jobs = config.scrape_configs.map(({ job_name: job }) => job);
    expect(jobs).toEqual(["str-worker"]);
    const named = expressions.flatMap((expr) =>
      namesIn(expr).selected.flatMap(({ matchers }) =>
        matchers.filter(({ label }) => label === "job").map(({ value }) => value),
      ),
    );
    expect(new Set(named)).toEqual(new Set(jobs));
  });

  test("has a test of what makes it fire", () => {
    const cases = readFileSync(join(root, "test/fixtures/prometheus/alerts.yaml"), "utf8");
    for (const { alert } of alerts) expect(cases).toContain(`alertname="${alert}"`);
  });

  test("is alone with its name, and so is a group of rules", () => {
    const names = [...alerts.map(({ alert }) => alert), ...ruleFile.groups.map(({ name }) => name)];
    expect(new Set(names).size).toBe(names.length);
  });
});

describe("the dashboard", () => {
  test("shows every metric of the catalogue", () => {
    const shown = queries.flatMap(({ expr }) =>
      namesIn(expr).selected.map(({ metric }) => seriesOf(metric)?.metric),
    );
    expect([...new Set(shown)].sort()).toEqual(Object.keys(metrics).sort());
  });

  test("names its series by labels that they have", () => {
    for (const { title, expr, legendFormat } of queries) {
      const { selected, grouping } = namesIn(expr);
      const labels = [...grouping, ...seriesOf(selected[0]!.metric)!.labels];
      for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
        expect(labels, title).toContain(label);
    }
  });

  test("asks the chosen data source alone, with variables that it has", () => {
    const variables = dashboard.templating.list.map(({ name }) => name);
    expect(variables).toEqual(["datasource", "instance", "tool"]);
    for (const { type, datasource, targets = [] } of dashboard.panels) {
      const sources = [datasource, ...targets.map((target) => target.datasource)];
      if (type !== "row")
        expect(new Set(sources.map((source) => source!.uid))).toEqual(new Set(["${datasource}"]));
    }
    const used = [...JSON.stringify(dashboard).matchAll(/\$\{?([a-z]\w*)/g)];
    for (const [, variable] of used) expect(variables).toContain(variable);
    expect(dashboard).not.toHaveProperty("id");
  });

  test("has panels with ids of their own, none on top of another", () => {
    const { panels } = dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
  });
});
