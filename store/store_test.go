package store_test

import (
	"path/filepath"
	"testing"

	"github.com/targetside/auditor/store"
	"github.com/targetside/auditor/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return store.NewMemory() })
}

func TestMemoryInSmallParts(t *testing.T) {
	store.SmallParts(t)
	TestMemory(t)
}

func TestSQLiteInSmallParts(t *testing.T) {
	store.SmallParts(t)
	TestSQLite(t)
}

func TestSQLite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		s, err := store.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "auditor.db"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
