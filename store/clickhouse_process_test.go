package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/targetside/auditor/migrations"
	"github.com/targetside/auditor/store"
	"github.com/targetside/auditor/store/clickhousetest"
	"github.com/targetside/auditor/store/storetest"
)

// The engine in a process of its own is asked over the native protocol, by many at once:
// the tables and statements of the store as they are.

var nativeDatabases atomic.Int64

// nativeAt is how to reach an empty database.
func nativeAt(t testing.TB, n *clickhousetest.Native) store.ClickHouse {
	t.Helper()
	at := store.ClickHouse{Addr: []string{n.Addr}, Database: "default", User: clickhousetest.User, Connections: 4}
	l := link(t, at)
	at.Database = fmt.Sprintf("native_%d", nativeDatabases.Add(1))
	if err := l.Exec(t.Context(), "CREATE DATABASE "+at.Database); err != nil {
		t.Fatal(err)
	}
	return at
}

func openNative(t testing.TB, at store.ClickHouse) store.Store {
	t.Helper()
	if err := store.MigrateClickHouse(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	s, err := store.OpenClickHouse(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	store.TrustClocks(s)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestClickHouseNative(t *testing.T) {
	n := clickhousetest.StartNative(t)
	compression := []string{"lz4", "zstd", "none"}
	storetest.Run(t, func(t *testing.T) store.Store {
		at := nativeAt(t, n)
		at.Compression = compression[0]
		compression = append(compression[1:], compression[0])
		return openNative(t, at)
	})
}

// Many processes write at the same moment, each some scopes of its own, and two of them
// the same one; what is there is what one of them would have written alone.
func TestClickHouseNativeOfManyWriters(t *testing.T) {
	at := nativeAt(t, clickhousetest.StartNative(t))
	var writers []store.Store
	for range 6 {
		writers = append(writers, openNative(t, at))
	}
	want := store.NewMemory()
	writeAtOnce(t, writers, 20, want)
	same(t, "of many writers", openNative(t, at), want)
}

// writeAtOnce lets each of some stores write some seconds of a scope, all at the same
// time, the first two the same. What that makes it writes to another store, once.
func writeAtOnce(t *testing.T, stores []store.Store, seconds int64, want store.Store) {
	t.Helper()
	var all sync.WaitGroup
	for i, s := range stores {
		n := max(i, 1)
		scope := fmt.Sprintf("s%d", n)
		r := rand.New(rand.NewPCG(93, uint64(n)))
		var writes []*store.Write
		for at := int64(benchBase); at < benchBase+seconds; at++ {
			w := randomWrite(r, at, 1)
			w.Scope = scope
			for j := range w.Rows {
				w.Rows[j].Scope = scope
			}
			for j := range w.Counted {
				w.Counted[j].Partition += scope
			}
			writes = append(writes, w)
		}
		if i > 0 {
			for _, w := range writes {
				if err := want.Write(t.Context(), w); err != nil {
					t.Fatal(err)
				}
			}
		}
		all.Go(func() {
			for _, w := range writes {
				err := s.Write(t.Context(), w)
				for errors.Is(err, store.ErrTakenOver) {
					err = s.Write(t.Context(), w)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// Of several that migrate at the same moment one runs, and it alone begins steps.
func TestClickHouseNativeMigrations(t *testing.T) {
	at := nativeAt(t, clickhousetest.StartNative(t))
	var runs []func(began func(string)) error
	for range 6 {
		runs = append(runs, func(began func(string)) error { return store.MigrateClickHouse(t.Context(), at, began) })
	}
	migrateAtOnce(t, runs, at.Cluster)
}

// migrateAtOnce lets some runs migrate an empty database at the same time, each until it
// is told that all is done.
func migrateAtOnce(t *testing.T, runs []func(began func(string)) error, cluster string) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	var began []string
	for _, run := range runs {
		all.Go(func() {
			for {
				err := run(func(step string) {
					mu.Lock()
					defer mu.Unlock()
					began = append(began, step)
				})
				if err == nil {
					return
				}
				if !errors.Is(err, store.ErrMigrating) {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	steps, err := migrations.ClickHouse(cluster)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, s := range steps {
		want = append(want, s.Name)
	}
	if !slices.Equal(began, want) {
		t.Errorf("%d runs began %q, want %q", len(runs), began, want)
	}
}

// The engine takes all that is made on a cluster as it is, on one replica after the
// other, which agree through a ZooKeeper. It has nobody to carry ON CLUSTER out, and
// takes no rows into replicated tables: for these see TestCluster.
func TestClickHouseNativeReplicatedTables(t *testing.T) {
	z := clickhousetest.StartZooKeeper(t)
	steps, err := migrations.ClickHouse("fleet")
	if err != nil {
		t.Fatal(err)
	}
	for _, replica := range []string{"replica-1", "replica-2"} {
		at := nativeAt(t, clickhousetest.StartNativeOf(t, z, replica))
		l := link(t, at)
		if err := l.Exec(t.Context(), "CREATE DATABASE auditor"); err != nil {
			t.Fatal(err)
		}
		at.Database = "auditor"
		l = link(t, at)
		for _, s := range steps {
			for _, text := range s.Statements {
				// It is understood as far as to the cluster.
				if err := l.Exec(t.Context(), text); err == nil || !strings.Contains(err.Error(), "cluster 'fleet' not found") {
					t.Errorf("%s on a cluster that is not there gives %v", s.Name, err)
				}
				if err := l.Exec(t.Context(), strings.Replace(text, " ON CLUSTER `fleet`", "", 1)); err != nil {
					t.Errorf("%s, on %s: %v", s.Name, replica, err)
				}
			}
		}
		areMade(t, replica, l, steps)
	}
}

// The settings with which a store reads and writes in a cluster are known to the engine.
func TestClickHouseNativeSettingsOfACluster(t *testing.T) {
	at := nativeAt(t, clickhousetest.StartNative(t))
	want := store.NewMemory()
	openNative(t, at)
	at.Cluster = "fleet"
	s, err := store.OpenClickHouse(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := tickWrite(benchBase, 3)
	if err := errors.Join(s.Write(t.Context(), w), s.Check(t.Context()), want.Write(t.Context(), w)); err != nil {
		t.Fatal(err)
	}
	same(t, "with the settings of a cluster", s, want)
}
