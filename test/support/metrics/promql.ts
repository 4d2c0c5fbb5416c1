/**
 * What PromQL expressions name, read by the grammar of Prometheus' own editor.
 */
import { parser } from "@prometheus-io/lezer-promql";

/** A metric in an expression, with the values that its labels are compared with. */
export interface Selected {
  readonly metric: string;
  readonly matchers: readonly { readonly label: string; readonly value: string }[];
}

/** What an expression names. */
export interface Named {
  readonly selected: readonly Selected[];
  /** Of `by`, `without`, `on`, `ignoring` and `group_left`. */
  readonly grouping: readonly string[];
}

/** Reads an expression of a rule or a panel. Throws for one that is not PromQL. */
export function namesIn(expression: string): Named {
  // Grafana puts a duration there.
  const text = expression.replaceAll("$__rate_interval", "1m");
  const selected: { metric: string; matchers: { label: string; value: string }[] }[] = [];
  const grouping: string[] = [];
  parser.parse(text).iterate({
    enter: ({ name, type, from, to, node }) => {
      const own = text.slice(from, to);
      if (type.isError) throw new Error(`not PromQL at ${from}: ${text}`);
      if (name === "VectorSelector") selected.push({ metric: "", matchers: [] });
      if (name === "Identifier") selected.at(-1)!.metric = own;
      if (name === "LabelName" && node.parent?.name === "GroupingLabels") grouping.push(own);
      if (name === "UnquotedLabelMatcher") {
        const [label, value] = ["LabelName", "StringLiteral"].map((child) => {
          const { from, to } = node.getChild(child)!;
          return text.slice(from, to);
        });
        selected.at(-1)!.matchers.push({ label: label!, value: JSON.parse(value!) as string });
      }
    },
  });
  return { selected, grouping };
}
