/** What the page makes of numbers, texts, results and addresses. */
import { describe, expect, test } from "vitest";
import { parseCsv } from "../../../console/format/csv.ts";
import {
  formatBound,
  formatBytes,
  formatCount,
  formatDuration,
  formatNumber,
  formatTime,
} from "../../../console/format/format.ts";
import { plainText } from "../../../console/format/terminal-text.ts";
import { parseRoute, callAddress, toolAddress, tokenOf } from "../../../console/routes.ts";
import { inputsOf, startFiles } from "../../../console/tools/files.ts";
import { searchTools } from "../../../console/tools/search-tools.ts";
import { imagesOf } from "../../../console/values/images.ts";
import { isSame } from "../../../console/values/json.ts";
import { cellText, gridsOf, maxRows } from "../../../console/values/table-rows.ts";
import { recordedTools } from "../../support/console/recorded-tools.ts";
import { anyCharacter, fc, test as property } from "../../support/properties/property.ts";

describe("a number", () => {
  test.each([
    [0, "0 ms"],
    [0.25, "250 µs"],
    [2.25, "2.3 ms"],
    [850, "850 ms"],
    [1250, "1.25 s"],
    [60_000, "1 min"],
    [125_000, "2 min 5 s"],
    [3_599_999, "1 h"],
    [11_220_000, "3 h 7 min"],
  ])("of %d ms is %s", (ms, text) => expect(formatDuration(ms)).toBe(text));

  test.each([
    [0, "0 B"],
    [1536, "1.5 KiB"],
    [1024 ** 3, "1 GiB"],
    [250 * 1024 ** 2, "250 MiB"],
  ])("of %d bytes is %s", (bytes, text) => expect(formatBytes(bytes)).toBe(text));

  test("of a limit has its unit", () => {
    expect(formatBound(300, "seconds")).toBe("5 min");
    expect(formatBound(128, "count")).toBe("128");
    expect(formatBound(1024, "bytes")).toBe("1 KiB");
    expect(formatBound(0.12345, "cores")).toBe("0.123 cores");
    expect(formatCount(1, "call")).toBe("1 call");
    expect(formatCount(0, "call")).toBe("0 calls");
    expect(formatNumber(1 / 3)).toBe("0.333");
  });

  test("of a time has the date on other days only", () => {
    const noon = new Date(2026, 0, 2, 12, 3, 4).getTime();
    expect(formatTime(noon, noon + 1000)).toBe("12:03:04");
    expect(formatTime(noon, noon + 86_400_000)).toBe("2026-01-02 12:03:04");
  });
});

describe("text of others", () => {
  test("loses what moves a terminal, and shows other control characters", () => {
    expect(plainText("\x1b[1;31mred\x1b[0m \x1b]0;title\x07ok\r\nnext\0\u202e")).toBe(
      "red ok\nnext��",
    );
  });

  property.prop([fc.string({ unit: anyCharacter })])("keeps no control character", (text) => {
    expect(plainText(text)).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/);
  });

  test("of CSV has quoted fields, other separators and a bound", () => {
    expect(parseCsv('a,"b ""c"", d"\r\n1,"x\ny"\n\n2,3', 10)).toEqual([
      ["a", 'b "c", d'],
      ["1", "x\ny"],
      ["2", "3"],
    ]);
    expect(parseCsv("a;b,c;d\n1;2;3", 10)[1]).toEqual(["1", "2", "3"]);
    expect(parseCsv("a\nb\nc", 2)).toHaveLength(2);
  });

  property.prop([
    fc.array(fc.array(fc.string({ minLength: 1 }), { minLength: 2, maxLength: 2 }), {
      minLength: 1,
      maxLength: 9,
    }),
  ])("of CSV gives back what was quoted", (rows) => {
    const quote = (text: string) => `"${text.replaceAll('"', '""')}"`;
    const text = [["h", "i"], ...rows].map((row) => row.map(quote).join(",")).join("\n");
    expect(parseCsv(text, 20)).toEqual([["h", "i"], ...rows]);
  });
});

describe("a result", () => {
  test("has tables of lists of objects, with a bound", () => {
    const many = Array.from({ length: maxRows + 3 }, (_, a) => ({ a }));
    const grids = gridsOf({ rows: [{ a: 1 }, { b: { c: 2 } }], many, none: [1], empty: [] });
    expect(grids.map(({ name }) => name)).toEqual(["rows", "many"]);
    expect(grids[0]?.grid).toEqual({
      columns: ["a", "b"],
      rows: [
        [1, undefined],
        [undefined, { c: 2 }],
      ],
      more: 0,
    });
    expect(grids[1]?.grid.more).toBe(3);
    expect(cellText({ c: 2 })).toBe('{"c":2}');
    expect(cellText("x".repeat(300))).toHaveLength(201);
  });

  test("has images of data URLs that hold pixels, and no others", () => {
    const image = "data:image/png;base64,AAAA";
    const others = ["data:image/svg+xml;base64,AAAA", "https://example.org/a.png", `${image}"`];
    expect(imagesOf({ image, a: others[0]!, b: others[1]!, c: others[2]! })).toEqual([
      { name: "image", source: image },
    ]);
  });

  test("is the same in any order of members", () => {
    expect(isSame({ a: 1, b: [{ c: null }] }, { b: [{ c: null }], a: 1 })).toBe(true);
    expect(isSame({ a: 1 }, { a: 1, b: 2 })).toBe(false);
    expect(isSame([1], { 0: 1 })).toBe(false);
    expect(isSame({ toString: 1 }, { a: 1 })).toBe(false);
  });
});

describe("an address", () => {
  test.each([
    ["", { page: "tools" }],
    ["#/calls", { page: "calls" }],
    ["#/calls/", { page: "calls" }],
    ["#/calls/a%2Fb", { page: "call", id: "a/b" }],
    ["#/tools/t?again=c%201", { page: "tool", name: "t", again: "c 1" }],
    ["#/tools/%E0", { page: "unknown" }],
    ["#/tools/a/b", { page: "unknown" }],
    ["#/other/a", { page: "unknown" }],
    ["#token=secret", { page: "tools" }],
  ])("%s leads to %j", (fragment, route) => expect(parseRoute(fragment)).toEqual(route));

  property.prop([fc.string({ minLength: 1 }), fc.string({ minLength: 1 })])(
    "of any tool and call leads back to it",
    (name, id) => {
      expect(parseRoute(toolAddress(name, id))).toEqual({ page: "tool", name, again: id });
      expect(parseRoute(callAddress(id))).toEqual({ page: "call", id });
    },
  );

  test("has a token where a link brings one", () => {
    expect(tokenOf("#token=a%20b")).toBe("a b");
    expect(tokenOf("#/tools?token=a")).toBeUndefined();
    expect(tokenOf("#token=")).toBeUndefined();
  });
});

describe("tools", () => {
  test("are found by all words of a search", () => {
    const names = (search: string) => searchTools(recordedTools, search).map(({ name }) => name);
    expect(names("")).toHaveLength(recordedTools.length);
    expect(names(" COUNTS report ")).toEqual(["process_file"]);
    expect(names("counts nothing")).toEqual([]);
  });

  test("get their files as one or as a list", () => {
    const parameters = [
      { name: "one", isList: false, isOptional: false },
      { name: "more", isList: true, isOptional: true },
    ];
    const given = {
      one: { filename: "a", version: 1 },
      more: [
        { filename: "b", version: 0 },
        { filename: "c", version: 2 },
      ],
    };
    const files = startFiles(parameters, given);
    expect(inputsOf(parameters, files, [])).toEqual(given);
    const problems: { message: string }[] = [];
    const waiting = { ...files["one"]![0]!, stored: null };
    const inputs = inputsOf(parameters, { more: [waiting] }, problems as never);
    expect(inputs).toEqual({});
    expect(problems.map(({ message }) => message)).toEqual([
      "needs a file",
      "has a file that is still being uploaded",
    ]);
  });
});
