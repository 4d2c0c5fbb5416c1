import { type RecordType, decode, encode } from "dns-packet";
import { describe, expect, test } from "vitest";
import { answerTo } from "../../../worker/egress/dns.ts";
import { SandboxNames, maxNames } from "../../../worker/egress/names.ts";

const addressOf = (name: string): string | undefined =>
  name === "api.example.com" ? "127.64.0.1" : undefined;

function ask(name: string, type: RecordType = "A", more: object = {}) {
  const question = encode({ type: "query", id: 7, questions: [{ name, type }], ...more });
  const answer = answerTo(question, addressOf);
  return answer && decode(answer);
}

describe("name service inside", () => {
  test("answers an allowed name with its address inside, in any case", () => {
    for (const name of ["api.example.com", "API.example.COM"])
      expect(ask(name)).toMatchObject({
        id: 7,
        type: "response",
        rcode: "NOERROR",
        answers: [{ name, type: "A", data: "127.64.0.1" }],
      });
  });

  test.each(["AAAA", "CAA", "TXT", "MX"] as const)("has no %s of it", (type) => {
    expect(ask("api.example.com", type)).toMatchObject({ rcode: "NOERROR", answers: [] });
  });

  // An HTTPS record would have TLS hide the name that it asks for: RFC 9460, section 14.3.
  test.each([64, 65])("has no record of type %i of it", (type) => {
    const question = encode({ type: "query", questions: [{ name: "api.example.com", type: "A" }] });
    question.writeUInt16BE(type, question.byteLength - 4);
    const answer = answerTo(question, addressOf)!;
    expect(decode(answer)).toMatchObject({ rcode: "NOERROR", answers: [] });
  });

  test.each(["example.com", "x.api.example.com", "secret.attacker.example", ""])(
    "knows nothing of %j",
    (name) => {
      expect(ask(name)).toMatchObject({ rcode: "NXDOMAIN", answers: [] });
    },
  );

  test("answers nothing but questions, of a size that questions have", () => {
    expect(answerTo(Buffer.from("no question"), addressOf)).toBeUndefined();
    expect(answerTo(Buffer.alloc(0), addressOf)).toBeUndefined();
    expect(answerTo(Buffer.alloc(4_096), addressOf)).toBeUndefined();
    const response = encode({ type: "response", questions: [{ name: "a.example", type: "A" }] });
    expect(answerTo(response, addressOf)).toBeUndefined();
  });

  test("answers one question at a time", () => {
    const questions = [
      { name: "api.example.com", type: "A" },
      { name: "api.example.com", type: "A" },
    ] as const;
    expect(ask("", "A", { questions })).toMatchObject({ rcode: "NOTIMP", answers: [] });
  });
});

describe("the names of a sandbox", () => {
  test("have an address each, which leads back", () => {
    const names = new SandboxNames();
    const first = names.addressOf("a.example") ?? "";
    const second = names.addressOf("b.example") ?? "";
    expect([first, second]).toEqual(["127.64.0.1", "127.64.0.2"]);
    expect(names.addressOf("a.example")).toBe(first);
    expect(names.nameOf(second)).toBe("b.example");
    expect(names.nameOf("127.64.0.3")).toBeUndefined();
  });

  test("are bounded, and those that are there stay", () => {
    const names = new SandboxNames();
    for (let count = 0; count < maxNames; count++) names.addressOf(`n${count}.example`);
    expect(names.addressOf("one.more.example")).toBeUndefined();
    expect(names.addressOf("n0.example")).toBe("127.64.0.1");
    expect(names.addressOf(`n${maxNames - 1}.example`)).toBe("127.64.16.0");
  });
});
