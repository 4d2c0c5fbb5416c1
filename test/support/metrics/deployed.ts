/**
 * The rules and the dashboard of deploy/, as Prometheus and Grafana read them.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

const deploy = join(import.meta.dirname, "../../../deploy");

/** Path of the file of rules. */
export const rulesPath = join(deploy, "prometheus/rules.yaml");
/** Path of the example of a configuration. */
export const configPath = join(deploy, "prometheus/prometheus.yaml");

export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface Recording {
  readonly record: string;
  readonly expr: string;
}

export interface RuleFile {
  readonly groups: readonly {
    readonly name: string;
    readonly rules: readonly (Alert | Recording)[];
  }[];
}

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: Readonly<Record<"x" | "y" | "w" | "h", number>>;
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly {
    readonly expr: string;
    readonly legendFormat: string;
    readonly datasource: { readonly uid: string };
  }[];
}

export interface Dashboard {
  readonly id?: unknown;
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly {
      readonly name: string;
      readonly type: string;
      readonly definition?: string;
    }[];
  };
}

export const ruleFile = parse(readFileSync(rulesPath, "utf8")) as RuleFile;
export const alerts = ruleFile.groups.flatMap(({ rules }) =>
  rules.filter((rule) => "alert" in rule),
);
export const recordings = ruleFile.groups.flatMap(({ rules }) =>
  rules.filter((rule) => "record" in rule),
);
export const dashboard = JSON.parse(
  readFileSync(join(deploy, "grafana/dashboard.json"), "utf8"),
) as Dashboard;
/** Every query of a panel. */
export const queries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr, legendFormat }) => ({ title, expr, legendFormat })),
);
