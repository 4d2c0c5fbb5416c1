/** What the schema says of a field, in words. */
import { formatNumber } from "../../format/format.ts";
import type { Field, NumberField, TextField } from "../field.ts";

/** Bounds and formats that the control does not show; empty if there are none. */
export function hintOf(field: Field): string {
  switch (field.kind) {
    case "number":
      return numberHint(field);
    case "text":
      return textHint(field);
    case "json":
      return `JSON: ${field.expects}`;
    default:
      return "";
  }
}

function numberHint(field: NumberField): string {
  const bounds = [
    bound("at least", field.minimum),
    bound("at most", field.maximum),
    bound("more than", field.exclusiveMinimum),
    bound("less than", field.exclusiveMaximum),
    bound("a multiple of", field.multipleOf),
  ].filter((text) => text !== "");
  return [field.isInteger ? "whole number" : "number", ...bounds].join(", ");
}

function textHint(field: TextField): string {
  return [
    field.format ?? "",
    field.pattern === null ? "" : `matches ${field.pattern}`,
    field.minLength === null ? "" : `at least ${field.minLength} characters`,
    field.maxLength === null ? "" : `at most ${field.maxLength} characters`,
  ]
    .filter((text) => text !== "")
    .join(", ");
}

function bound(words: string, value: number | null): string {
  return value === null ? "" : `${words} ${formatNumber(value)}`;
}
