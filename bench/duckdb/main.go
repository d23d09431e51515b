// Command duckdb answers, with DuckDB, the question that the benchmark compares
// by: how many arrivals, and how many distinct question keys, did each second,
// dependency and route see? It prints one JSON object: the number of (second,
// dependency, route) cells and the sums over them, so that another program's
// answer can be checked against this one without moving every cell.
//
// With -overall the same pass also counts the distinct keys of the whole file.
// That costs DuckDB about a fifth more, so both are measured.
//
// It is a module of its own: DuckDB's weight must not reach the auditor.
package main

import (
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	_ "github.com/duckdb/duckdb-go/v2"
)

// answer is what is printed. Keys is present with -overall only.
type answer struct {
	Version  string `json:"version"`
	Cells    int64  `json:"cells"`
	Arrivals int64  `json:"arrivals"`
	Keyed    int64  `json:"keyed"`
	Failed   int64  `json:"failed"`
	CellKeys int64  `json:"cell_keys"`      // sum over the cells of their distinct keys
	Keys     *int64 `json:"keys,omitempty"` // distinct keys of the whole file
}

func main() {
	threads := flag.Int("threads", 2, "threads that DuckDB may use")
	overall := flag.Bool("overall", false, "count the distinct keys of the whole file as well")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: duckdb [-threads N] [-overall] FILE")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	a, err := ask(flag.Arg(0), *threads, *overall)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(a)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "duckdb:", err)
		os.Exit(1)
	}
}

func ask(path string, threads int, overall bool) (a answer, err error) {
	db, err := sql.Open("duckdb", "?threads="+strconv.Itoa(threads))
	if err != nil {
		return a, fmt.Errorf("open duckdb: %w", err)
	}
	defer func() {
		if cerr := db.Close(); err == nil {
			err = cerr
		}
	}()
	if err := db.QueryRow("SELECT version()").Scan(&a.Version); err != nil {
		return a, fmt.Errorf("read version: %w", err)
	}
	err = db.QueryRow(query(path, overall)).Scan(&a.Cells, &a.Arrivals, &a.Keyed, &a.Failed, &a.CellKeys, &a.Keys)
	if err != nil {
		return a, fmt.Errorf("query: %w", err)
	}
	return a, nil
}

// query groups by cell and sums the cells up. The columns are given, so no pass
// is spent on guessing them. The grand total rides in the same pass as a second
// grouping set; its row is the one in which the second is grouped away.
func query(path string, overall bool) string {
	groups, total, keys := "second, dependency, route", "FALSE", "NULL"
	if overall {
		groups = "GROUPING SETS ((second, dependency, route), ())"
		total = "GROUPING(second) = 1"
		keys = "max(keys) FILTER (total)"
	}
	return fmt.Sprintf(`
WITH records AS (
  SELECT date_trunc('second', time) AS second, dependency, route, question_key, status
  FROM read_json(%s, format = 'newline_delimited', columns = {
    time: 'TIMESTAMP', dependency: 'VARCHAR', route: 'VARCHAR', question_key: 'VARCHAR', status: 'INTEGER'})
), cells AS (
  SELECT %s AS total, count(*) AS arrivals, count(question_key) AS keyed,
         count(*) FILTER (status >= 500) AS failed, count(DISTINCT question_key) AS keys
  FROM records GROUP BY %s
)
SELECT count(*) FILTER (NOT total), sum(arrivals) FILTER (NOT total)::BIGINT, sum(keyed) FILTER (NOT total)::BIGINT,
       sum(failed) FILTER (NOT total)::BIGINT, sum(keys) FILTER (NOT total)::BIGINT,
       %s
FROM cells`, "'"+strings.ReplaceAll(path, "'", "''")+"'", total, groups, keys)
}
