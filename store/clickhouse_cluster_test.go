package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/targetside/auditor/migrations"
	"github.com/targetside/auditor/store"
	"github.com/targetside/auditor/store/clickhousetest"
	"github.com/targetside/auditor/store/storetest"
)

// What needs replicas runs on two of Debian's servers, which agree through a ZooKeeper:
// ON CLUSTER, replicated tables, writes that wait for a quorum, and who migrates. It is
// the store itself that runs there, over the native protocol, with its statements
// reduced to what a server of 2018 knows: see store.Reductions.
func TestCluster(t *testing.T) {
	c := clickhousetest.StartCluster(t, 2)
	direct := []*store.Link{link(t, debianAt(c.Servers[0])), link(t, debianAt(c.Servers[1]))}
	if err := direct[0].Exec(t.Context(), "CREATE DATABASE IF NOT EXISTS auditor ON CLUSTER `"+c.Name+"`"); err != nil {
		t.Fatal(err)
	}
	// Each of two stores goes to a server of its own.
	a, b := openReduced(t, c, c.Servers[0].Addr, "auditor"), openReduced(t, c, c.Servers[1].Addr, "auditor")
	stores := []*store.Reduced{a, b}
	want := store.NewMemory()
	both := func(what string) {
		t.Helper()
		for i, s := range stores {
			same(t, fmt.Sprintf("%s, asked of server %d", what, i+1), s, want)
		}
	}

	// One migrates at a time, whatever server it goes to; all is then on both servers, and
	// may be run again.
	migrateAtOnce(t, []func(func(string)) error{
		func(began func(string)) error { return a.Migrate(t.Context(), began) },
		func(began func(string)) error { return b.Migrate(t.Context(), began) },
		func(began func(string)) error {
			return openReduced(t, c, c.Servers[1].Addr, "auditor").Migrate(t.Context(), began)
		},
	}, c.Name)
	steps, err := migrations.ClickHouse(c.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		for _, text := range s.Statements {
			if err := a.Exec(t.Context(), text); err != nil {
				t.Errorf("run again, %s fails: %v", s.Name, err)
			}
		}
	}
	for i, l := range direct {
		tables := areMade(t, fmt.Sprintf("server %d", i+1), l, steps)
		replicated := uint64(0)
		for _, table := range tables {
			if strings.Contains(table, " Replicated") {
				replicated++
			}
		}
		eventually(t, func() bool {
			var n uint64
			err := l.One(t.Context(), "SELECT count() FROM system.replicas WHERE database = 'auditor' AND active_replicas = 2 AND NOT is_readonly", &n)
			if err != nil {
				t.Fatal(err)
			}
			return n == replicated
		})
	}

	// What was acknowledged by one is read from the other.
	write := func(s store.Store, w *store.Write) {
		t.Helper()
		if err := errors.Join(s.Write(t.Context(), w), want.Write(t.Context(), w)); err != nil {
			t.Fatal(err)
		}
	}
	first := tickWrite(benchBase-120, 3)
	write(a, first)
	both("after a write to the first")
	next := tickWrite(benchBase-120, 3)
	for i := range next.Rows {
		next.Rows[i].Version += 7
		next.Rows[i].Counts.Busy++
	}
	write(b, next)
	both("after the second has replaced it")
	// The same block is stored again, and replaced: it is not taken for a copy.
	stored := func() (n uint64) {
		t.Helper()
		if err := direct[0].One(t.Context(), "SELECT count() FROM auditor.takings", &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range 2 {
		if err := a.Exec(t.Context(), "INSERT INTO takings (scope, rules, token) SELECT 'other', 1, 'token'"); err != nil {
			t.Fatal(err)
		}
	}
	if n := stored(); n != 2 {
		t.Errorf("of two equal blocks %d are stored", n)
	}

	// Many write at once, to both; none is refused for good because another waits for its
	// replicas.
	writeAtOnce(t, []store.Store{a, b, openReduced(t, c, c.Servers[0].Addr, "auditor"), openReduced(t, c, c.Servers[1].Addr, "auditor")}, 6, want)
	both("of many writers")
	if err := errors.Join(a.Save(t.Context(), "file", []byte("one")), b.Save(t.Context(), "file", []byte("two"))); err != nil {
		t.Fatal(err)
	}
	if state, err := a.Load(t.Context(), "file"); err != nil || string(state) != "two" {
		t.Errorf("a position saved last by the second is %q, %v", state, err)
	}
	var rules []uint32
	for i := range 4 {
		r, err := stores[i%2].NextRules(t.Context(), "rules")
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r)
	}
	if !slices.Equal(rules, []uint32{1, 2, 3, 4}) {
		t.Errorf("rules taken by both in turn are %v", rules)
	}

	// Without the other replica nothing is acknowledged, and the error says what is
	// missing; all of it lands when that is back.
	goOn, err := c.Servers[1].Hang()
	if err != nil {
		t.Fatal(err)
	}
	w := tickWrite(benchBase+300, 3)
	eventually(t, func() bool {
		within, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		err := a.Write(within, w)
		if err == nil {
			t.Fatal("a write is acknowledged that one of two replicas has")
		}
		if !errors.Is(err, store.ErrSlow) && !errors.Is(err, store.ErrUnreachable) {
			t.Fatalf("without the other replica there is %v", err)
		}
		return errors.Is(err, store.ErrUnreachable) && strings.Contains(err.Error(), "285")
	})
	goOn()
	eventually(t, func() bool { return a.Write(t.Context(), w) == nil })
	if err := want.Write(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	both("after a replica was away")

	// What has expired is not returned, and deleted on both.
	now := time.Unix(benchBase+30*3600, 0)
	retention := map[store.Resolution]time.Duration{store.Tick: 2 * time.Hour, store.TenSeconds: 24 * time.Hour}
	if err := errors.Join(a.Expire(t.Context(), now, retention), want.Expire(t.Context(), now, retention)); err != nil {
		t.Fatal(err)
	}
	both("after expiry")
	// The replica that was away has lost its session with the ZooKeeper, and gets another.
	eventually(t, func() bool {
		err := b.Check(t.Context())
		if err != nil && !errors.Is(err, store.ErrUnreachable) && !errors.Is(err, store.ErrReadOnly) {
			t.Fatalf("what was away says %v", err)
		}
		return err == nil
	})
	// What is told on one server is heard on the other.
	told := []store.Share{{Kind: 1, Name: "kafka seats/0", At: 7, State: []byte("told")}}
	_, since, err := a.Exchange(t.Context(), "fleet", "a", 1, told, store.Since{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Exchange(t.Context(), "fleet", "a", 2, nil, since); err != nil {
		t.Error(err)
	}
	if heard, _, err := b.Exchange(t.Context(), "fleet", "b", 1, nil, store.Since{}); err != nil || len(heard) != 1 || heard[0].Member != "a" || string(heard[0].State) != "told" {
		t.Errorf("heard is %v, %v", heard, err)
	}
	if err := a.Needed(t.Context()); err != nil {
		t.Error(err)
	}
}

// What is refused for want of a quorum is asked for again. Where there is no cluster there
// is nothing to wait for.
func TestClickHouseAsksAgainInACluster(t *testing.T) {
	server := clickhousetest.Start(t)
	alone, want := openClickHouse(t, server), store.NewMemory()
	at := clickhouseAt(server)
	at.Cluster = "fleet"
	s, err := store.OpenClickHouse(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	refuse := func() {
		for _, of := range []string{"INSERT INTO facts", "INSERT INTO facts", "INSERT INTO checks", "INSERT INTO positions", "INSERT INTO takings"} {
			server.Fail(clickhousetest.Fault{Of: of, Code: 286, Message: "another insert waits"})
		}
	}
	refuse()
	server.Fail(clickhousetest.Fault{Of: "FROM facts", Code: 289, Message: "it lags"})
	w := tickWrite(benchBase, 3)
	if err := errors.Join(s.Write(t.Context(), w), want.Write(t.Context(), w), s.Check(t.Context()), s.Save(t.Context(), "file", nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.NextRules(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	same(t, "after refusals", s, want)
	refuse()
	if err := alone.Check(t.Context()); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("without a cluster there is %v", err)
	}
	// Nobody waits for longer than he wants.
	server.Judge(func(text string) (clickhousetest.Fault, bool) {
		return clickhousetest.Fault{Code: 286, Message: "another insert waits"}, strings.HasPrefix(text, "INSERT")
	})
	within, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := s.Check(within); !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "another insert waits") {
		t.Errorf("while it goes on there is %v", err)
	}
}

// Who gives up in the midst of being refused hears of that, be it between two tries or
// within one.
func TestRefusalsAreNotForgotten(t *testing.T) {
	refusal := &ch.Exception{Code: 286, Message: "another insert waits"}
	for _, within := range []bool{false, true} {
		ctx, stop := context.WithCancel(t.Context())
		tries := 0
		err := store.UnlessRefused(ctx, func() error {
			if tries++; tries < 3 {
				return refusal
			}
			if stop(); within {
				return ctx.Err()
			}
			return refusal
		})
		var e *ch.Exception
		if !errors.As(err, &e) || !errors.Is(err, context.Canceled) || tries != 3 {
			t.Errorf("%v after %d tries", err, tries)
		}
	}
}

// The store keeps all of its promises there, asked of one server or the other. It takes
// a minute or more: see make test-cluster.
func TestClusterConformance(t *testing.T) {
	if os.Getenv("AUDITOR_CLUSTER") == "" {
		t.Skip("it takes a minute or more: make test-cluster runs it")
	}
	c := clickhousetest.StartCluster(t, 2)
	n := 0
	storetest.Run(t, func(t *testing.T) store.Store {
		n++
		database := fmt.Sprintf("conformance_%d", n)
		if err := link(t, debianAt(c.Servers[0])).Exec(t.Context(), "CREATE DATABASE "+database+" ON CLUSTER `"+c.Name+"`"); err != nil {
			t.Fatal(err)
		}
		r := openReduced(t, c, c.Servers[n%2].Addr, database)
		if err := r.Migrate(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		return r
	})
}

// eventually waits for servers that are busy with one another, for a minute at most.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
	}
}

func openReduced(t testing.TB, c *clickhousetest.Cluster, addr, database string) *store.Reduced {
	t.Helper()
	r, err := store.OpenReduced(store.ClickHouse{
		Addr: []string{addr}, Database: database, User: clickhousetest.DebianUser, Password: clickhousetest.DebianPassword, Connections: 4, Cluster: c.Name,
	}, len(c.Servers))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// areMade wants all tables and views that steps make in database auditor, and no others. It
// returns their names and engines.
func areMade(t *testing.T, where string, l *store.Link, steps []migrations.Step) (tables []string) {
	t.Helper()
	err := l.One(t.Context(), "SELECT groupArray(concat(name, ' ', engine)) FROM (SELECT * FROM system.tables WHERE database = 'auditor' ORDER BY name)", &tables)
	if want := tablesOf(steps); err != nil || !slices.Equal(tables, want) {
		t.Errorf("%s has %q, %v, want %q", where, tables, err, want)
	}
	return tables
}

// tablesOf are the names and engines of what steps make, in order.
func tablesOf(steps []migrations.Step) (out []string) {
	for _, s := range steps {
		for _, text := range s.Statements {
			words := strings.Fields(text)
			if words[0] != "CREATE" {
				continue
			}
			engine := "View"
			if _, rest, ok := strings.Cut(text, "ENGINE = "); ok {
				engine = rest[:strings.IndexAny(rest, "(\n")]
			}
			out = append(out, words[5]+" "+engine)
		}
	}
	slices.Sort(out)
	return out
}
