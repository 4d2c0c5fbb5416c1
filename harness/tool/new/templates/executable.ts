/**
 * New executables.
 */
import { dirname } from "node:path";
import { quote } from "../../../options/typed-command.ts";
import type { Scaffold } from "../scaffold.ts";
import type { executableShapes } from "../shapes.ts";
import { exampleArgs, fileTestCases, testCases } from "./cases.ts";

type ExecutableShape = (typeof executableShapes)[number];

const executableMode = 0o755;

/** A program that counts words. `tool` is the name that agents call. */
export function executableScaffold(shape: ExecutableShape, tool: string): Scaffold {
  return shape === "shell" ? shellScaffold(tool) : goScaffold(tool);
}

function shellScaffold(tool: string): Scaffold {
  return {
    files: [
      { name: tool, text: shellText(tool), mode: executableMode },
      { name: `${tool}.test.yaml`, text: fileTestCases(tool) },
    ],
    entry: { executable: tool },
    tools: [tool],
    target: tool,
    call: (path) => `--preload ${quote(`file=${path}`)}`,
  };
}

function goScaffold(tool: string): Scaffold {
  return {
    files: [
      { name: `${tool}/main.go`, text: goText(tool) },
      { name: `${tool}/go.mod`, text: `module ${tool}\n\ngo 1.21\n` },
      { name: `${tool}.test.yaml`, text: testCases(tool) },
    ],
    entry: { tool_dir: tool, executable: tool },
    tools: [tool],
    target: `${tool}/${tool}`,
    call: () => exampleArgs,
    buildCommand: (path) => `CGO_ENABLED=0 go build -C ${quote(dirname(path))} -o ${quote(tool)} .`,
  };
}

function shellText(tool: string): string {
  return `#!/bin/sh
# A tool that counts the words of a file, which lies in input/. $1 is a file with the call as JSON.
set -eu

if [ "\${1-}" = --schema ]; then
  cat <<'JSON'
{"tools": {"${tool}": {
  "description": "Count the words of a file",
  "parameters": {
    "type": "object",
    "properties": {"file": {"type": "string", "description": "Filename of an artifact"}},
    "required": ["file"]
  },
  "artifact_params": {"file": {"is_list": false, "is_optional": false}}
}}}
JSON
  exit
fi

# Whole or not at all: the worker reads what has this name when the program ends.
answer() {
  printf '%s' "$1" >result.json.new
  mv result.json.new result.json
}

for file in input/*; do
  if [ ! -s "$file" ]; then
    answer '{"error": "There is no text to count"}'
    exit
  fi
  echo '{"status": "Counting..."}' >status.pipe
  words=$(tr -s '[:space:]' '\\n' <"$file")
  printf '%s' "$words" >output/words.txt
  answer "{\\"result\\": {\\"status\\": \\"success\\", \\"count\\": $(echo "$words" | wc -l)}}"
done
`;
}

function goText(tool: string): string {
  return `// A tool that counts words. The argument is a file with the call; result.json is the answer.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const schema = \`{"tools": {"${tool}": {
  "description": "Count the words of a text",
  "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
}}}\`

// call is what this program uses of runner_args.json.
type call struct {
	Args struct {
		Text string \`json:"text"\`
	} \`json:"args"\`
	OutputDir  string \`json:"output_dir"\`
	ResultFile string \`json:"result_file"\`
	StatusPipe string \`json:"status_pipe"\`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--schema" {
		fmt.Println(schema)
		return
	}
	var c call
	document, err := os.ReadFile(os.Args[1])
	check(err)
	check(json.Unmarshal(document, &c))
	answer := map[string]any{}
	if result, err := run(c); err != nil {
		answer["error"] = err.Error()
	} else {
		answer["result"] = result
	}
	document, err = json.Marshal(answer)
	check(err)
	// Whole or not at all: the worker reads what has this name when the program ends.
	check(os.WriteFile(c.ResultFile+".new", document, 0o600))
	check(os.Rename(c.ResultFile+".new", c.ResultFile))
}

func run(c call) (map[string]any, error) {
	words := strings.Fields(c.Args.Text)
	if len(words) == 0 {
		return nil, errors.New("There is no text to count")
	}
	sendStatus(c, "Counting...")
	path := filepath.Join(c.OutputDir, "words.txt")
	if err := os.WriteFile(path, []byte(strings.Join(words, "\\n")), 0o600); err != nil {
		return nil, err
	}
	return map[string]any{"status": "success", "count": len(words)}, nil
}

// sendStatus tells the user how far the tool is, if anybody listens.
func sendStatus(c call, text string) {
	pipe, err := os.OpenFile(c.StatusPipe, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer pipe.Close()
	line, _ := json.Marshal(map[string]string{"status": text})
	fmt.Fprintf(pipe, "%s\\n", line)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
`;
}
