//go:build !linux

package ingest

import (
	"errors"
	"os"
)

func mapPages(*os.File, int64, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapPages([]byte) {}
