/**
 * What is said again and again.
 */
import { describe, expect, test } from "vitest";
import { createRepeatFilter } from "../../../worker/support/repeat-filter.ts";

const minuteMs = 60_000;

/** Seconds at which one of these texts was news, each said once a second. */
function newsSeconds(texts: readonly string[], seconds: number): number[] {
  let nowMs = 0;
  const isNews = createRepeatFilter({ monotonicMs: () => nowMs });
  const news: number[] = [];
  for (let second = 0; second < seconds; second++) {
    nowMs = second * 1_000;
    if (texts.map((text) => isNews(text)).includes(true)) news.push(second);
  }
  return news;
}

describe("a text that is repeated", () => {
  test("is news at intervals that grow from a second to five minutes", () => {
    const news = newsSeconds(["away"], 2_000);
    expect(news).toEqual([0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 811, 1_111, 1_411, 1_711]);
  });

  test("is news less often though another is said in between", () => {
    expect(newsSeconds(["away", "refused"], 60)).toEqual([0, 1, 3, 7, 15, 31]);
  });

  test("is news at once after a long silence, and so is any other text", () => {
    let nowMs = 0;
    const isNews = createRepeatFilter({ monotonicMs: () => nowMs });
    for (; nowMs < 5 * minuteMs; nowMs += 1_000) isNews("away");
    expect(isNews("refused")).toBe(true);
    nowMs += 60 * minuteMs;
    expect(isNews("away")).toBe(true);
    nowMs += 1_000;
    expect(isNews("away")).toBe(true);
  });

  test("is forgotten when many others were said", () => {
    const isNews = createRepeatFilter({ monotonicMs: () => 0 });
    isNews("away");
    for (let n = 0; n < 100; n++) isNews(`other ${n}`);
    expect(isNews("away")).toBe(true);
  });
});
