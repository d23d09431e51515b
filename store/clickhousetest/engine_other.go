//go:build !(linux && amd64)

package clickhousetest

import (
	"errors"
	"time"
)

type engine struct{}

func open() (*engine, error) {
	return nil, errors.New("the engine is pinned for Linux on amd64 only")
}

func (*engine) close() error { return nil }

func (*engine) run(session, string, []byte, string) ([]byte, error) { return nil, nil }

func local(string, []string) error { return errors.ErrUnsupported }

func lock(string) (func(), error) { return nil, errors.ErrUnsupported }

func threadTime() time.Duration { return 0 }
