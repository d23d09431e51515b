package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

const versionHelp = `Usage: auditor version [--output json|text]

Prints which build this is. A build from a checkout has its revision, with
"modified" if there were changes that are not in it.

Flags:
`

// build says what the binary was made from. What is not known is empty.
type build struct {
	Version  string `json:"version"` // of the module; "devel" for a build from a checkout
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"` // of the revision, RFC 3339
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func version(_ context.Context, p *program, args []string) (int, error) {
	f := flag.NewFlagSet("version", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(f.Output(), versionHelp); f.PrintDefaults() }
	output := f.String("output", "text", "print `json` or text")
	rest, err := parse(p, f, args)
	if err != nil {
		return exitUsage, err
	}
	if len(rest) > 0 {
		return exitUsage, fmt.Errorf("found %d arguments, want none", len(rest))
	}
	b := thisBuild()
	switch *output {
	case "json":
		e := json.NewEncoder(p.stdout)
		e.SetIndent("", " ")
		err = e.Encode(b)
	case "text":
		err = b.text(p.stdout)
	default:
		return exitUsage, fmt.Errorf("--output %q is unknown: json or text", *output)
	}
	if err != nil {
		return exitFailed, fmt.Errorf("write: %w", err)
	}
	return exitOK, nil
}

func thisBuild() build {
	b := build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	b.Go = cmp.Or(info.GoVersion, b.Go)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b build) text(w io.Writer) error {
	revision := ""
	if b.Revision != "" {
		revision = " (" + b.Revision
		if b.Time != "" {
			revision += ", " + b.Time
		}
		if b.Modified {
			revision += ", modified"
		}
		revision += ")"
	}
	_, err := fmt.Fprintf(w, "auditor %s%s %s %s\n", b.Version, revision, b.Go, b.Platform)
	return err
}
