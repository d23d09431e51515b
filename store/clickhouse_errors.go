package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

// clickhouseErrors are what ClickHouse's error codes mean to us. The numbers are those
// of its source, src/Common/ErrorCodes.cpp.
var clickhouseErrors = map[int32]error{
	516: ErrPassword, 193: ErrPassword, 192: ErrPassword, 194: ErrPassword, // AUTHENTICATION_FAILED, WRONG_PASSWORD, UNKNOWN_USER, REQUIRED_PASSWORD
	81:  ErrNoDatabase,                                   // UNKNOWN_DATABASE
	164: ErrReadOnly, 242: ErrReadOnly, 497: ErrReadOnly, // READONLY, TABLE_IS_READ_ONLY, ACCESS_DENIED
	159: ErrSlow, 160: ErrSlow, 209: ErrSlow, 202: ErrSlow, // TIMEOUT_EXCEEDED, TOO_SLOW, SOCKET_TIMEOUT, TOO_MANY_SIMULTANEOUS_QUERIES
	252: ErrSlow, 241: ErrSlow, 319: ErrSlow, // TOO_MANY_PARTS, MEMORY_LIMIT_EXCEEDED, UNKNOWN_STATUS_OF_INSERT
	210: ErrUnreachable, 285: ErrUnreachable, 999: ErrUnreachable, // NETWORK_ERROR, TOO_FEW_LIVE_REPLICAS, KEEPER_EXCEPTION
	unsatisfiedQuorum: ErrUnreachable, replicaNotInQuorum: ErrUnreachable, 225: ErrUnreachable, // NO_ZOOKEEPER
	115: ErrTooOld,                                             // UNKNOWN_SETTING
	243: ErrFull,                                               // NOT_ENOUGH_SPACE
	60:  ErrSchema, 16: ErrSchema, 47: ErrSchema, 8: ErrSchema, // UNKNOWN_TABLE, NO_SUCH_COLUMN_IN_TABLE, UNKNOWN_IDENTIFIER, THERE_IS_NO_COLUMN
	53: ErrSchema, 20: ErrSchema, // TYPE_MISMATCH, NUMBER_OF_COLUMNS_DOESNT_MATCH
}

// noSpace is what the C library calls ENOSPC. ClickHouse says NOT_ENOUGH_SPACE where it
// reserves room beforehand; a disk that is full when it writes comes under the codes of
// whatever it did, with this text.
const noSpace = "No space left on device"

// clickhouseRemedies say what to do. None of them asks for a restart: the next write
// finds out whether the cause is gone.
var clickhouseRemedies = map[error]string{
	ErrUnreachable: "check that it runs, and store.clickhouse.addr, protocol and tls; what was not stored will be written again",
	ErrSlow:        "see what it is busy with (system.processes, system.merges, system.parts); what was not stored will be written again",
	ErrTooOld:      "ClickHouse 23.10 or later is needed",
	ErrPassword:    "check store.clickhouse.username and password or password_file",
	ErrNoDatabase:  "check store.clickhouse.database, or make it with auditor migrate up",
	ErrReadOnly:    "give the user the right to read, insert and delete in the database (for auditor migrate up also to create it, tables and views), or end its read-only state; what was not stored will be written again",
	ErrFull:        "make room on its disks, or shorten store.retention; what was not stored will be written again",
	ErrSchema:      "run auditor migrate status with this version, then auditor migrate up if steps are missing",
}

// explain makes an error say what it is of, which one, and what to do. The texts of
// ClickHouse may hold parts of a query, and these the names of routes and callers, but
// neither keys nor the password.
func (c *clickhouse) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	var what error
	if !errors.Is(err, context.Canceled) && !errors.Is(err, errClosed) {
		what = meaning(err)
	}
	switch remedy := clickhouseRemedies[what]; {
	case what == nil:
		return fmt.Errorf("store: %s %s: %w", doing, c, err)
	case errors.Is(err, what):
		return fmt.Errorf("store: %s %s: %w: %s", doing, c, err, remedy)
	default:
		return fmt.Errorf("store: %s %s: it %w: %s (%w)", doing, c, what, remedy, shortened{err})
	}
}

// String names the database.
func (c *clickhouse) String() string {
	return fmt.Sprintf("ClickHouse database %s at %s", c.at.Database, strings.Join(c.at.Addr, ", "))
}

// meaning is the named error that an error stands for, nil if there is none.
func meaning(err error) error {
	for what := range clickhouseRemedies {
		if errors.Is(err, what) {
			return what
		}
	}
	var e *ch.Exception
	if errors.As(err, &e) {
		if clickhouseErrors[e.Code] == nil && strings.Contains(e.Message, noSpace) {
			return ErrFull
		}
		return clickhouseErrors[e.Code]
	}
	var dial *net.OpError
	var network net.Error
	var certificate *tls.CertificateVerificationError
	var notTLS tls.RecordHeaderError
	switch {
	case errors.As(err, &dial) && dial.Op == "dial", errors.As(err, &certificate), errors.As(err, &notTLS):
		return ErrUnreachable
	case errors.Is(err, ch.ErrAcquireConnTimeout), errors.As(err, &network) && network.Timeout():
		return ErrSlow
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.As(err, &network):
		return ErrUnreachable
	}
	return nil
}

// maxErrorText is how much of ClickHouse's text an error repeats.
const maxErrorText = 300

// shortened is an error with its text cut.
type shortened struct{ error }

func (s shortened) Error() string {
	text := s.error.Error()
	if len(text) > maxErrorText {
		text = text[:maxErrorText] + "…"
	}
	return text
}

func (s shortened) Unwrap() error { return s.error }
