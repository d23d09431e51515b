package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/targetside/auditor/"

// allowed says what of the module each package may import. Imports run one way,
// along the life of a record.
var allowed = map[string][]string{
	"aggregate":            {"aggregate/budget", "keys"},
	"aggregate/budget":     {},
	"alerts":               {"aggregate", "aggregate/budget"},
	"api":                  {"aggregate", "aggregate/budget", "alerts"},
	"cmd/auditor":          {"aggregate", "aggregate/budget", "alerts", "api", "config", "dashboards", "examples", "ingest", "ingest/accesslog", "keys", "lab", "lab/drill", "pipeline", "store"},
	"config":               {},
	"dashboards":           {},
	"dashboards/livetest":  {},
	"ingest":               {},
	"ingest/accesslog":     {},
	"ingest/kafkatest":     {},
	"keys":                 {},
	"lab":                  {"keys"},
	"lab/drill":            {},
	"migrations":           {},
	"pipeline":             {"aggregate", "aggregate/budget", "ingest", "ingest/accesslog", "keys"},
	"store":                {"aggregate", "migrations"},
	"store/clickhousetest": {},
	"store/storetest":      {"aggregate", "keys", "store"},
	"examples":             {},
	"examples/record":      {},
	"bench/gen":            {},
	"bench/run":            {},
	"bench/scan":           {},
	"bench/kafka":          {"ingest"},
	"bench/duckdb":         {},
}

// only says which packages alone may import what lies outside.
var only = map[string][]string{
	"go.yaml.in/yaml/":               {"config", "lab"},
	"github.com/klauspost/compress/": {"ingest"},
	"flag":                           {"cmd/auditor", "bench/gen", "bench/run", "bench/scan", "bench/kafka", "bench/duckdb", "examples/record", "ingest/kafkatest"},
	"os/signal":                      {"cmd/auditor", "examples/record", "bench/run", "ingest/kafkatest"},
	"github.com/segmentio/kafka-go":  {"ingest"},
	"github.com/twmb/franz-go":       {"cmd/auditor", "bench/kafka"}, // brokers of the demo and of measurements
	"github.com/go-chi/chi/":         {"api"},
	"github.com/ClickHouse/":         {"store", "store/clickhousetest"},
	"github.com/ebitengine/purego":   {"store/clickhousetest"},
	"modernc.org/":                   {"store"},
	"github.com/hashicorp/":          {},
	"github.com/prometheus/":         {"api"},
}

// leaves may import nothing but the standard library.
var leaves = []string{"ingest/accesslog", "keys", "aggregate/budget", "aggregate"}

func TestImportsRunOneWay(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(rel)
		may, known := allowed[pkg]
		if !known {
			t.Errorf("%s is a package that the layout does not know: add it to the table, with what it may import", pkg)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if inner, ok := strings.CutPrefix(name, module); ok {
				if !slices.Contains(may, inner) {
					t.Errorf("%s imports %s", pkg, inner)
				}
				continue
			}
			if slices.Contains(leaves, pkg) && strings.Contains(strings.Split(name, "/")[0], ".") {
				t.Errorf("%s is a leaf and imports %s", pkg, name)
			}
			for prefix, who := range only {
				if (name == prefix || strings.HasPrefix(name, prefix)) && !slices.Contains(who, pkg) {
					t.Errorf("%s imports %s, which only %v may", pkg, name, who)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
