package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// explainWidth is the most columns that one value out of a log takes.
const explainWidth = 200

// printExplainedText prints what the JSON says as a block of lines. What the
// record does not say is left out; values out of the log are made harmless.
func printExplainedText(w io.Writer, v any) error {
	var b strings.Builder
	switch v := v.(type) {
	case *unreadable:
		what := "could not be read: " + v.Error
		if v.Other != "" {
			what = "is no record: " + v.Other
		}
		fmt.Fprintf(&b, "%s:%d (byte %d) %s\n\n", v.File, v.Line, v.Offset, what)
	case *explained:
		explainedText(&b, v)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func explainedText(b *strings.Builder, x *explained) {
	fmt.Fprintf(b, "%s:%d (byte %d) %s", x.File, x.Line, x.Offset, x.Format)
	if x.Envelope != nil {
		fmt.Fprintf(b, ", in %s", *x.Envelope)
	}
	if x.Parts > 1 {
		fmt.Fprintf(b, ", joined from %d lines", x.Parts)
	}
	if x.Kind != "end" {
		fmt.Fprintf(b, ", a %s record", x.Kind)
	}
	if x.Outbound {
		b.WriteString(", the caller's side")
	}
	b.WriteString("\n")
	row := func(name string, parts ...string) {
		parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
		if len(parts) > 0 {
			fmt.Fprintf(b, "  %-12s %s\n", name, strings.Join(parts, "  "))
		}
	}
	if x.Start != nil {
		row("time", *x.Start+" to "+*x.End, textMillis("took", x.Duration), "(logged: the "+*x.StampIs+", to "+textMillis("", x.Uncertainty)+")")
	} else {
		row("time", "none", textMillis("took", x.Duration))
	}
	row("request", textValue("", x.Method), textValue("", x.Path), textValue("at", x.Authority))
	row("caller", textValue("", x.Peer), textValue("agent", x.UserAgent))
	row("dependency", textValue("", x.Dependency), textValue("route", x.Route))
	row("answer", textCount("status", x.Status), textUnread(x), textCount("grpc", x.GRPCCode), textCount("bytes", x.BytesSent))
	for i, t := range x.Tries {
		sent := ""
		if !t.Sent {
			sent = "not sent"
		}
		row(fmt.Sprintf("try %d", i+1), textValue("", t.Addr), textCount("status", t.Status), textMillis("took", t.TimeMS), sent)
	}
	row("attempt", textCount("", x.Attempt), textValue("counted by the", x.AttemptScope), textCount("left", x.AttemptsLeft))
	if x.Deadline != nil {
		row("deadline", *x.Deadline, "past: "+*x.PastDeadline, textMillis("by", x.PastBy))
	}
	row("retry after", textMillis("", x.RetryAfter))
	row("departure", x.Class, "gone "+x.Gone, "delivered "+x.Delivered, "work "+x.Work, textFlag(!x.Visible, "(this record could not show one)"), textFlag(x.Local, "(answered by the logger)"))
	if x.Key != nil {
		row("key", visible(x.Key.Value, explainWidth, ""), "from "+visible(x.Key.Source, explainWidth, ""), textFlag(x.Key.AsLogged != "", "as logged "+visible(x.Key.AsLogged, explainWidth, "")))
	} else {
		row("key", "none")
	}
	a := &x.Attribution
	row("attribution", a.Class, textValue("", a.Reason), textValue("by", a.Scheme), textValue("originator", a.Originator), textMillis("age", a.AgeMS))
	row("request id", textValue("", x.RequestID), textValue("compared as", x.RequestIDMasked))
	row("arrival id", textValue("", x.ArrivalID))
	row("notes", strings.Join(x.Notes, ", "))
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(x.Source)) {
		fields = append(fields, name+"="+visible(x.Source[name], 60, " ="))
	}
	row("read from", fields...)
	b.WriteString("\n")
}

// textUnread shows a status as logged where it is not the status.
func textUnread(x *explained) string {
	if x.StatusRaw == nil || x.Status != nil && strconv.FormatInt(*x.Status, 10) == *x.StatusRaw {
		return ""
	}
	return textValue("status as logged", x.StatusRaw)
}

func textValue(name string, s *string) string {
	if s == nil {
		return ""
	}
	return labelled(name, visible(*s, explainWidth, ""))
}

func textCount(name string, n *int64) string {
	if n == nil {
		return ""
	}
	return labelled(name, strconv.FormatInt(*n, 10))
}

func textMillis(name string, ms *float64) string {
	if ms == nil {
		return ""
	}
	return labelled(name, strconv.FormatFloat(*ms, 'f', -1, 64)+" ms")
}

func textFlag(set bool, s string) string {
	if !set {
		return ""
	}
	return s
}

func labelled(name, value string) string {
	if name == "" {
		return value
	}
	return name + " " + value
}
