package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/targetside/auditor/config"
	"github.com/targetside/auditor/ingest"
	"github.com/targetside/auditor/ingest/accesslog"
)

const explainHelp = `Usage: auditor explain [flags] [FILE…]

Shows how each record of an access log is read, and why: its times, its result,
what it says of the caller's departure, whose question it is, and which log
field gave each value. FILE may be compressed with gzip or zstd; "-", or no FILE,
is standard input.

A record is one JSON object on a line (--output json) or a block of lines. What
the record does not say is null, or left out of the block. A line that cannot be
read is an object with line, offset and error; the line itself is never shown.

With --shows nothing is read: what the records of the format can show is printed
(the key, the attempt, the departure, the deadline), and what to write into the
logger's configuration to make it show. Text output ends with the same.

Unlike all other commands this one prints KEYS AS THEY STAND IN THE LOG, like an
editor opened on it. Mind where you paste its output.

The exit status is 1 if no record could be read.

Flags:
`

// explain is the subcommand.
func explain(ctx context.Context, p *program, args []string) (int, error) {
	f := flag.NewFlagSet("explain", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(f.Output(), explainHelp); f.PrintDefaults() }
	configFile := f.String("config", "", "read fields, zone and keys from the configuration in `FILE`")
	format := f.String("format", "", "read the lines as `FORMAT`: auto, "+strings.Join(accesslog.Formats(), ", ")+" (default: the configuration's, else auto)")
	pattern := f.String("pattern", "", "read the lines by `PATTERN`, with --format apache (a LogFormat), iis (a #Fields line) or pattern (an expression)")
	output := f.String("output", "text", "print `json` (one object a line) or text")
	shows := f.Bool("shows", false, "print what --format can show, of every format if there is none, and read nothing")
	files, err := parse(p, f, args)
	if err != nil {
		return exitUsage, err
	}
	if *output != "json" && *output != "text" {
		return exitUsage, fmt.Errorf("--output %q is unknown: json or text", *output)
	}
	if err := checkFormat(*format); err != nil {
		return exitUsage, err
	}
	if *shows {
		if len(files) > 0 {
			return exitUsage, errors.New("--shows reads no file")
		}
		return printShows(p.stdout, *format, *output == "json")
	}
	l, err := load(p, *configFile, false)
	if err != nil {
		return exitFailed, err
	}
	if len(files) == 0 {
		files = []string{ingest.Stdin}
	}
	x := &explainer{
		p: p, loaded: l, format: *format, pattern: *pattern, out: bufio.NewWriter(p.stdout),
		print: printExplainedText,
	}
	if *output == "json" {
		x.print = printExplainedJSON
	}
	if x.keys, err = newKeyReader(l.ring); err != nil {
		return exitFailed, err
	}
	var faults []error
	for _, name := range files {
		if err := x.file(ctx, name); err != nil {
			faults = append(faults, err)
		}
	}
	if *output == "text" {
		for _, format := range x.formats {
			showsText(x.out, format)
		}
	}
	if err := x.out.Flush(); err != nil {
		faults = append(faults, fmt.Errorf("write: %w", err))
	}
	return x.end(faults)
}

// explainer prints what it reads of one file after the other.
type explainer struct {
	p       *program
	loaded  *loaded
	format  string // of the command line, as is pattern
	pattern string
	keys    *keyReader
	out     *bufio.Writer
	print   func(io.Writer, any) error

	formats             []string // of the records, in the order in which they came
	records, unreadable int64
	others              int64  // records that are not about a request, and not meant to be
	filled              bool   // some file was not empty
	likely              string // the format of which a file is that could not be read by the one named; empty is not known

	// Of the file being read.
	name   string
	readAs string
	parser *accesslog.Parser
	entry  accesslog.Entry
	joiner *accesslog.Joiner // nil where no line can be split
}

// explainPeek is how much of a file is looked at to find its format.
const explainPeek = 64 << 10

func (x *explainer) file(ctx context.Context, name string) error {
	f, err := ingest.Open(name, x.p.stdin)
	if err != nil {
		return err
	}
	defer f.Close()
	x.name = name
	sample, err := f.Peek(explainPeek)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(sample)) == 0 {
		// A log just after its rotation is, which is no reason to fail.
		fmt.Fprintf(x.p.stderr, "auditor explain: read %s: is empty\n", f.Name())
		return nil
	}
	x.filled = true
	if err := x.begin(name, sample); err != nil {
		return fmt.Errorf("read %s: %w", f.Name(), err)
	}
	sample = bytes.Clone(sample)
	defer func() {
		if x.records == 0 && x.likely == "" {
			x.likely = otherFormat(x.readAs, sample)
		}
	}()
	at := accesslog.Place{Line: 1}
	for {
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		block, err := f.Next(explainPeek, nil)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		for rest := block.Data; len(rest) > 0; {
			line, after, ended := bytes.Cut(rest, []byte("\n"))
			if !ended && at.Line > 1 { // one line by itself is taken for whole
				x.parser.Line(rest)
			}
			if err := x.line(line, at); err != nil {
				return err
			}
			at.Line++
			at.Offset += int64(len(rest) - len(after))
			rest = after
		}
		if err := x.out.Flush(); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	if x.joiner == nil {
		return nil
	}
	for _, from := range x.joiner.Pending() {
		if err := x.refuse(from, string(accesslog.RejectCut)); err != nil {
			return err
		}
	}
	return nil
}

// begin prepares for a file that starts with sample.
func (x *explainer) begin(name string, sample []byte) error {
	source, err := x.source(name)
	if err != nil {
		return err
	}
	c, err := x.loaded.parserOf(&source)
	if err != nil {
		return err
	}
	if x.format != "" {
		reformat(&c, x.format)
	}
	if x.pattern != "" {
		c.Pattern = x.pattern
	}
	if c.Format == "auto" {
		if c.Format, err = accesslog.Detect(sample); err != nil {
			return fmt.Errorf("%w with --format", err)
		}
	}
	c.Pattern = cmp.Or(accesslog.HeadPattern(c.Format, sample), c.Pattern)
	c.Keys, c.Trace = x.keys.fields, true
	x.readAs = c.Format
	if x.joiner = new(accesslog.Joiner); !x.joiner.Needed(sample) {
		x.joiner = nil
	}
	if x.parser, err = accesslog.New(c); err != nil {
		return err
	}
	x.parser.Declare("")
	return nil
}

// source is the configured one as which a file is read: that whose paths it
// matches, or the only one, or the only one of the format asked for.
func (x *explainer) source(name string) (config.Source, error) {
	if len(x.loaded.Sources) == 0 {
		return config.Source{Format: "auto"}, nil
	}
	i, err := x.loaded.sourceOf(name)
	if err == nil {
		return x.loaded.Sources[i], nil
	}
	same := -1
	for i, s := range x.loaded.Sources {
		if s.Format != x.format {
			continue
		}
		if same >= 0 {
			return config.Source{}, err
		}
		same = i
	}
	if same < 0 {
		return config.Source{}, err
	}
	return x.loaded.Sources[same], nil
}

// line explains the records of one line, once all its parts are there.
func (x *explainer) line(line []byte, at accesslog.Place) error {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	parts := 1
	if x.joiner != nil {
		dropped, complete := x.joiner.Dropped(), false
		line, at, parts, complete = x.joiner.LineAt(line, at)
		if x.joiner.Dropped() > dropped {
			return x.refuse(at, string(accesslog.RejectTooLong))
		}
		if !complete {
			return nil
		}
	}
	for rest := line; len(rest) > 0; {
		more, err := x.parser.Parse(rest, &x.entry)
		if err != nil {
			if err == accesslog.RejectOther {
				x.others++
				err = x.print(x.out, &unreadable{File: x.name, Line: at.Line, Offset: at.Offset, Other: "other_stream"})
			} else {
				err = x.refuse(at, err.Error())
			}
		} else {
			for range x.entry.Damaged {
				if err := x.refuse(at, string(accesslog.RejectDamaged)); err != nil {
					return err
				}
			}
			if x.records++; !slices.Contains(x.formats, x.readAs) {
				x.formats = append(x.formats, x.readAs)
			}
			err = x.print(x.out, x.record(line, at, parts))
		}
		if err != nil {
			return err
		}
		if len(more) >= len(rest) {
			break
		}
		rest = more
	}
	return nil
}

func (x *explainer) record(line []byte, at accesslog.Place, parts int) *explained {
	r := explainRecord(&x.entry, x.readAs)
	r.File, r.Line, r.Offset, r.Parts = x.name, at.Line, at.Offset, parts
	if x.entry.Notes&accesslog.NoteUnwrapped != 0 {
		r.Envelope = optionalWord(envelopeOf(line))
	}
	x.keys.explain(&x.entry, r)
	return r
}

// refuse shows a line that is no record.
func (x *explainer) refuse(at accesslog.Place, reason string) error {
	x.unreadable++
	return x.print(x.out, &unreadable{File: x.name, Line: at.Line, Offset: at.Offset, Error: reason})
}

// end says what could not be read, and with which status to leave.
func (x *explainer) end(faults []error) (int, error) {
	if x.unreadable > 0 {
		fmt.Fprintf(x.p.stderr, "auditor explain: %d records read, %d could not be read\n", x.records, x.unreadable)
	}
	if len(faults) > 0 {
		return exitFailed, errors.Join(faults...)
	}
	if x.records == 0 && !x.filled {
		return exitFailed, errors.New("nothing to read")
	}
	switch {
	case x.records > 0:
		return exitOK, nil
	case x.likely != "":
		return exitFailed, fmt.Errorf("no record could be read: is --format right? It looks like %s", x.likely)
	case x.unreadable == 0:
		return exitFailed, fmt.Errorf("no record is about a request: %d are of something else (other_stream)", x.others)
	}
	return exitFailed, errors.New("no record could be read: is --format right?")
}

// otherFormat is the format that most of a sample is of, empty if that is not known, or is
// the one by which none of it was read.
func otherFormat(readAs string, sample []byte) string {
	likely, err := accesslog.Detect(sample)
	if err != nil || likely == readAs {
		return ""
	}
	return likely
}

// envelopeOf names what the record of an unwrapped line lies in.
func envelopeOf(line []byte) string {
	line = bytes.TrimLeft(line, "\xef\xbb\xbf\x00 \t")
	switch {
	case len(line) > 0 && line[0] != '{':
		return "cri"
	case bytes.HasPrefix(line, []byte(`{"log":"`)) && bytes.Contains(line, []byte(`"stream":"`)):
		return "docker"
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(line, &members) == nil {
		for _, name := range []string{"log", "message", "msg"} {
			if len(members[name]) > 2 {
				return name
			}
		}
	}
	return "json"
}

func printExplainedJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
