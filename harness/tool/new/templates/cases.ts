/**
 * The test cases of new tools.
 */
import { stringify } from "yaml";
import { quote } from "../../../options/typed-command.ts";

/** Options of a call that every new tool with a text understands, as words of a command line. */
export const exampleArgs = `--args ${quote(`{"text": "one two three"}`)}`;

/** Cases of a tool that counts the words of its argument `text`. */
export function testCases(tool: string): string {
  return casesOf(tool, "args: { text: one two three }", `args: { text: "" }`);
}

/** Cases of a tool that counts the words of its artifact `file`. */
export function fileTestCases(tool: string): string {
  const fileOf = (text: string): string =>
    `artifacts: { file: { filename: a.txt, text: ${text} } }`;
  return casesOf(tool, fileOf("one two three"), fileOf('""'));
}

function casesOf(tool: string, given: string, nothing: string): string {
  return `# Calls of the tool in its sandbox, without a broker: harness tool test
${stringify({ tool })}
cases:
  - name: counts the words
    ${given}
    expect:
      result: { status: success, count: 3 }
      artifacts: { words.txt: "one\\ntwo\\nthree" }
      statuses: [Counting...]

  - name: says that there is no text
    ${nothing}
    expect:
      error: { code: TOOL_ERROR, message: There is no text to count }
`;
}
