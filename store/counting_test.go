package store_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/targetside/auditor/store"
)

// broken answers every call with an error.
type broken struct {
	store.Store // nil: what is missing below panics
	err         error
}

func (b broken) Write(context.Context, *store.Write) error              { return b.err }
func (b broken) Rows(context.Context, store.Query) ([]store.Row, error) { return nil, b.err }
func (b broken) Splits(context.Context, int64, int64) ([]string, error) { return nil, b.err }
func (b broken) Counted(context.Context, string) ([]store.Range, error) { return nil, b.err }
func (b broken) Closed(context.Context) (map[string]int64, error)       { return nil, b.err }
func (b broken) NextRules(context.Context, string) (uint32, error)      { return 0, b.err }
func (b broken) Note(context.Context, string) ([]byte, error)           { return nil, b.err }
func (b broken) Load(context.Context, string) ([]byte, error)           { return nil, b.err }
func (b broken) Save(context.Context, string, []byte) error             { return b.err }
func (b broken) Check(context.Context) error                            { return b.err }
func (b broken) Questions(context.Context, [16]byte, int) ([]store.Question, error) {
	return nil, b.err
}
func (b broken) WorstQuestions(context.Context, store.QuestionQuery) ([]store.Question, error) {
	return nil, b.err
}
func (b broken) Expire(context.Context, time.Time, map[store.Resolution]time.Duration) error {
	return b.err
}

// Every method of a store counts its error once, under one kind, and returns it.
func TestErrorsAreCounted(t *testing.T) {
	for err, kind := range map[error]string{
		fmt.Errorf("x: %w", store.ErrFull): "full", store.ErrSlow: "slow", context.DeadlineExceeded: "slow", errors.New("what else"): "other",
		nil: "", context.Canceled: "", store.ErrTooMany: "",
	} {
		c := store.CountErrors(broken{err: err})
		methods := reflect.TypeFor[store.Store]()
		calls := uint64(0)
		for i := range methods.NumMethod() {
			m := methods.Method(i)
			if m.Name == "Close" {
				continue
			}
			in := []reflect.Value{reflect.ValueOf(t.Context())}
			for a := 1; a < m.Type.NumIn(); a++ {
				in = append(in, reflect.Zero(m.Type.In(a)))
			}
			out := reflect.ValueOf(c).MethodByName(m.Name).Call(in)
			if got, _ := out[len(out)-1].Interface().(error); got != err {
				t.Errorf("%s returns %v, not %v", m.Name, got, err)
			}
			calls++
		}
		for name, n := range c.Errors() {
			if want := map[bool]uint64{true: calls}[name == kind]; n != want {
				t.Errorf("of %d calls that gave %v, %d are counted as %s", calls, err, n, name)
			}
		}
		if !slices.Contains(append(store.Kinds(), ""), kind) || len(c.Errors()) != len(store.Kinds()) {
			t.Errorf("the kinds are %q, those counted %v", store.Kinds(), c.Errors())
		}
	}
}
