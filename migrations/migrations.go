// Package migrations holds the schemas of the databases that a store may lie in,
// as numbered steps of SQL.
//
// A step, once released, is never changed: what comes later is a new step. Each
// of its statements may be run again after it was run. Running them, and noting
// which were run, is package store's.
package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

//go:embed sqlite/*.sql clickhouse/*.sql
var files embed.FS

// Step is one file of statements.
type Step struct {
	Number     int    // from 1, without gaps
	Name       string // of the file, such as "001_rows.sql"
	Statements []string
}

// SQLite returns the steps that make a SQLite database, in order.
func SQLite() ([]Step, error) { return steps(files, "sqlite") }

// ClickHouse returns the steps that make a ClickHouse database, in order. With the name
// of a cluster they are for all its servers, and the tables replicated.
func ClickHouse(cluster string) ([]Step, error) {
	out, err := steps(files, "clickhouse")
	on, replicated := "", ""
	if cluster != "" {
		on, replicated = "ON CLUSTER `"+strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(cluster)+"`", "Replicated"
	}
	fill := strings.NewReplacer("{cluster}", on, "{replicated}", replicated)
	for _, s := range out {
		for i, text := range s.Statements {
			s.Statements[i] = fill.Replace(text)
		}
	}
	return out, err
}

// steps reads the steps in a folder. An error is one of the program, not of its
// user.
func steps(from fs.FS, folder string) ([]Step, error) {
	entries, err := fs.ReadDir(from, folder)
	if err != nil {
		return nil, err
	}
	var out []Step
	for i, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "_")
		if n, err := strconv.Atoi(number); err != nil || n != i+1 {
			return nil, fmt.Errorf("migrations: %s/%s is not named for step %d", folder, e.Name(), i+1)
		}
		text, err := fs.ReadFile(from, folder+"/"+e.Name())
		if err != nil {
			return nil, err
		}
		out = append(out, Step{Number: i + 1, Name: e.Name(), Statements: split(string(text))})
	}
	return out, nil
}

// split parts a file into its statements. One ends with the line that ends in a
// semicolon; lines that are comments alone belong to none.
func split(text string) []string {
	var out []string
	var at strings.Builder
	for line := range strings.Lines(text) {
		if t := strings.TrimSpace(line); t == "" || strings.HasPrefix(t, "--") {
			continue
		}
		at.WriteString(line)
		if s := strings.TrimSpace(at.String()); strings.HasSuffix(s, ";") {
			out = append(out, strings.TrimSuffix(s, ";"))
			at.Reset()
		}
	}
	if rest := strings.TrimSpace(at.String()); rest != "" {
		out = append(out, rest)
	}
	return out
}
