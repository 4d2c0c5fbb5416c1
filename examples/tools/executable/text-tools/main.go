// Text tools: one program that provides two tools, word_count and top_words.
//
//	go build -o text-tools .
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

const schema = `{"tools": {
  "word_count": {
    "description": "Count the words of a text",
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
  },
  "top_words": {
    "description": "Save the most frequent words of a text as top-words.txt",
    "parameters": {
      "type": "object",
      "properties": {"text": {"type": "string"}, "count": {"type": "integer", "default": 3}},
      "required": ["text"]
    }
  }
}}`

// call is what this program uses of runner_args.json.
type call struct {
	ToolName string `json:"tool_name"`
	Args     struct {
		Text  string `json:"text"`
		Count int    `json:"count"`
	} `json:"args"`
	OutputDir  string `json:"output_dir"`
	ResultFile string `json:"result_file"`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--schema" {
		fmt.Println(schema)
		return
	}
	var c call
	c.Args.Count = 3
	document, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = json.Unmarshal(document, &c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	answer := map[string]any{"error": ""}
	if result, err := run(c); err != nil {
		answer["error"] = err.Error()
	} else {
		answer["result"] = result
	}
	if err := write(c.ResultFile, answer); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(c call) (map[string]any, error) {
	words := strings.Fields(strings.ToLower(c.Args.Text))
	switch c.ToolName {
	case "word_count":
		return map[string]any{"words": len(words)}, nil
	case "top_words":
		top := mostFrequent(words, c.Args.Count)
		name := filepath.Join(c.OutputDir, "top-words.txt")
		return map[string]any{"top": top}, os.WriteFile(name, []byte(strings.Join(top, "\n")), 0o644)
	}
	return nil, fmt.Errorf("there is no tool %q", c.ToolName)
}

func mostFrequent(words []string, count int) []string {
	times := map[string]int{}
	for _, word := range words {
		times[word]++
	}
	different := make([]string, 0, len(times))
	for word := range times {
		different = append(different, word)
	}
	sort.Slice(different, func(i, j int) bool {
		a, b := different[i], different[j]
		return times[a] > times[b] || times[a] == times[b] && a < b
	})
	return different[:max(0, min(count, len(different)))]
}

// write puts the answer in place whole or not at all.
func write(path string, answer any) error {
	document, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", document, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
