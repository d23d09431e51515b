package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/targetside/auditor/ingest/accesslog"
)

// formatShown is what explain says of a format.
type formatShown struct {
	Format    string    `json:"format"`
	Key       viewShown `json:"key"`
	Attempt   viewShown `json:"attempt"`
	Departure viewShown `json:"departure"`
	Deadline  viewShown `json:"deadline"`
	Duration  viewShown `json:"duration"`
	Stamp     viewShown `json:"fine_stamp"`
}

type viewShown struct {
	Shown string `json:"shown"` // never, partly, if logged, as it comes
	How   string `json:"how"`
}

// printShows prints what a format can show, or what every format can.
func printShows(w io.Writer, format string, asJSON bool) (int, error) {
	formats := []string{format}
	if format == "" || format == "auto" {
		formats = accesslog.Formats()
	}
	for _, format := range formats {
		var err error
		if asJSON {
			v, _ := accesslog.Shows(format)
			view := func(v accesslog.View) viewShown { return viewShown{v.Sight.String(), v.How} }
			err = printExplainedJSON(w, &formatShown{format, view(v.Key), view(v.Attempt), view(v.Departure), view(v.Deadline), view(v.Duration), view(v.Stamp)})
		} else {
			err = showsText(w, format)
		}
		if err != nil {
			return exitFailed, err
		}
	}
	return exitOK, nil
}

// showsText prints what a format can show as a block of lines.
func showsText(w io.Writer, format string) error {
	v, ok := accesslog.Shows(format)
	if !ok {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s can show\n", format)
	for _, row := range []struct {
		name string
		view accesslog.View
	}{{"key", v.Key}, {"attempt", v.Attempt}, {"departure", v.Departure}, {"deadline", v.Deadline}, {"duration", v.Duration}, {"fine stamp", v.Stamp}} {
		fmt.Fprintf(&b, "  %-12s %-12s %s\n", row.name, row.view.Sight, row.view.How)
	}
	b.WriteString("\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
