package keys

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

func generated(t *testing.T) (Generated, Generated, *Ring) {
	t.Helper()
	hmacKey, err := NewSecret("web", "a")
	if err != nil {
		t.Fatal(err)
	}
	edKey, err := NewEd25519("web", "e")
	if err != nil {
		t.Fatal(err)
	}
	public, err := ParsePublicKey(edKey.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	ring := mustRing(t, Config{Originators: []Originator{{ID: "web", Keys: []Key{
		{KID: "a", Secret: []byte(hmacKey.Secret)}, {KID: "e", PublicKey: public}}}}})
	return hmacKey, edKey, ring
}

func TestMintedKeysVerify(t *testing.T) {
	hmacKey, edKey, ring := generated(t)
	c := ring.NewChecker()
	now := time.UnixMilli(vectorMinted)
	form := regexp.MustCompile(`^qk(1\.web\.a\.mjuohs3f\.[A-Za-z0-9_-]{16}\.[A-Za-z0-9_-]{22}|2\.web\.e\.mjuohs3f\.[A-Za-z0-9_-]{16}\.[A-Za-z0-9_-]{86})$`)
	seen := make(map[string]bool)
	for _, g := range []Generated{hmacKey, edKey} {
		m, err := g.Minter()
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			text, err := m.Mint(now)
			if err != nil {
				t.Fatal(err)
			}
			if !form.MatchString(text) || seen[text] {
				t.Errorf("minted %q", text)
			}
			seen[text] = true
			if a := one(c, text, vectorStart); a.Class != Verified || a.Minted != vectorMinted {
				t.Errorf("%s: %v %q", text, a.Class, a.Reason)
			}
		}
	}
}

func TestMintFaults(t *testing.T) {
	hmacKey, edKey, _ := generated(t)
	qk1, _ := hmacKey.Minter()
	qk2, _ := edKey.Minter()
	now := time.UnixMilli(vectorMinted)
	for name, m := range map[string]Minter{
		"originator":   {"Web", "a", qk1.Secret, nil},
		"kid":          {"web", "", qk1.Secret, nil},
		"exactly one":  {"web", "a", qk1.Secret, qk2.PrivateKey},
		"one of":       {"web", "a", nil, nil},
		"has 31 bytes": {"web", "a", qk1.Secret[:31], nil},
		"has 32 bytes": {"web", "a", nil, qk2.PrivateKey[:32]},
	} {
		text, err := m.Mint(now)
		if err == nil || text != "" || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), hmacKey.Secret[:31]) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		ctx, err := m.NewQuestion(context.Background())
		if _, ok := FromContext(ctx); err == nil || ok {
			t.Errorf("%s: a question without a key has one", name)
		}
	}
	for _, clock := range []time.Time{time.UnixMilli(-1), {}, time.Date(2263, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if text, err := qk1.Mint(clock); err == nil {
			t.Errorf("minted %q at %v", text, clock)
		}
	}
}

func TestContext(t *testing.T) {
	hmacKey, _, ring := generated(t)
	m, _ := hmacKey.Minter()
	bare := context.Background()
	if key, ok := FromContext(bare); ok || key != "" {
		t.Errorf("an empty context carries %q", key)
	}
	if _, ok := FromContext(WithKey(bare, "")); ok {
		t.Error("an empty key is carried")
	}
	if key, ok := FromContext(WithKey(bare, "not even a key")); !ok || key != "not even a key" {
		t.Errorf("carries %q: an incoming key goes on unchanged", key)
	}
	ctx, err := m.NewQuestion(bare)
	if err != nil {
		t.Fatal(err)
	}
	key, ok := FromContext(ctx)
	if a := ring.NewChecker().Attribute([][]byte{[]byte(key)}, false, time.Now().UnixNano(), 0); !ok || a.Class != Verified {
		t.Errorf("question carries %q: %q", key, a.Reason)
	}
	next, _ := m.NewQuestion(ctx)
	if second, _ := FromContext(next); second == key || second == "" {
		t.Errorf("the next question carries %q after %q", second, key)
	}
	if again, _ := FromContext(ctx); again != key {
		t.Error("the first question lost its key")
	}
}

// target is a server that fails the first tries and keeps the Question-Key headers of all.
type target struct {
	*httptest.Server
	mu   sync.Mutex
	seen [][]string
}

func newTarget(t *testing.T, failures int) *target {
	s := &target{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen = append(s.seen, r.Header.Values(Header))
		switch {
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/here", http.StatusTemporaryRedirect)
		case len(s.seen) <= failures:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// arrivals returns what arrived since the last call, the headers of each arrival joined.
func (s *target) arrivals() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, values := range s.seen {
		list = append(list, strings.Join(values, "|"))
	}
	s.seen = nil
	return list
}

func expectArrivals(t *testing.T, got []string, n int, key string) {
	t.Helper()
	if len(got) != n {
		t.Errorf("%d arrivals, want %d: %q", len(got), n, got)
	}
	for i, header := range got {
		if header != key {
			t.Errorf("arrival %d carries %q, want %q", i+1, header, key)
		}
	}
}

func TestTransportUnderRetries(t *testing.T) {
	hmacKey, _, _ := generated(t)
	m, _ := hmacKey.Minter()
	question, err := m.NewQuestion(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	minted, _ := FromContext(question)
	for name, k := range map[string]struct {
		ctx context.Context
		key string
	}{
		"minted":   {question, minted},
		"incoming": {WithKey(context.Background(), vectorWeb), vectorWeb},
		"none":     {context.Background(), ""},
	} {
		t.Run(name+"/go-retryablehttp", func(t *testing.T) {
			s := newTarget(t, 3)
			client := retryablehttp.NewClient()
			client.Logger, client.RetryMax, client.RetryWaitMin, client.RetryWaitMax = nil, 5, time.Nanosecond, time.Nanosecond
			client.HTTPClient.Transport = &Transport{Base: s.Client().Transport}
			req, err := retryablehttp.NewRequestWithContext(k.ctx, "POST", s.URL, strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			expectArrivals(t, s.arrivals(), 4, k.key)
		})
		t.Run(name+"/redirect", func(t *testing.T) {
			s := newTarget(t, 0)
			client := &http.Client{Transport: &Transport{Base: s.Client().Transport}}
			req, _ := http.NewRequestWithContext(k.ctx, "GET", s.URL+"/moved", nil)
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			expectArrivals(t, s.arrivals(), 2, k.key)
		})
		t.Run(name+"/bare loop", func(t *testing.T) {
			s := newTarget(t, 2)
			client := &http.Client{Transport: &Transport{Base: &Transport{Base: s.Client().Transport}}} // wrapped twice: still one header
			for {
				req, _ := http.NewRequestWithContext(k.ctx, "GET", s.URL, nil)
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if len(req.Header) != 0 {
					t.Errorf("the caller's request was given %v", req.Header)
				}
				if resp.StatusCode == http.StatusOK {
					break
				}
			}
			expectArrivals(t, s.arrivals(), 3, k.key)
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTransportHeaders(t *testing.T) {
	for name, k := range map[string]struct {
		set, carried, want string
		same               bool // the very same request goes on
	}{
		"nothing":          {"", "", "", true},
		"carried":          {"", "K", "K", false},
		"already there":    {"K", "K", "K", true},
		"another is there": {"L", "K", "L", true},
		"set by hand":      {"L", "", "L", true},
	} {
		req := httptest.NewRequest("GET", "http://target/", nil)
		req = req.WithContext(WithKey(req.Context(), k.carried))
		if k.set != "" {
			req.Header.Set(Header, k.set)
		}
		called := false
		transport := &Transport{Base: roundTripper(func(got *http.Request) (*http.Response, error) {
			called = true
			if h := strings.Join(got.Header.Values(Header), "|"); h != k.want {
				t.Errorf("%s: header %q, want %q", name, h, k.want)
			}
			if (got == req) != k.same {
				t.Errorf("%s: same request: %v", name, got == req)
			}
			return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
		})}
		if _, err := transport.RoundTrip(req); err != nil || !called {
			t.Errorf("%s: called %v, %v", name, called, err)
		}
		if h := req.Header.Get(Header); h != k.set {
			t.Errorf("%s: the caller's request was given %q", name, h)
		}
	}
	req := &http.Request{Method: "GET"}
	req = req.WithContext(WithKey(context.Background(), "K"))
	transport := &Transport{Base: roundTripper(func(got *http.Request) (*http.Response, error) {
		if got.Header.Get(Header) != "K" {
			t.Error("a request without a header map lost its key")
		}
		return nil, nil
	})}
	transport.RoundTrip(req)
	transport.CloseIdleConnections()
}
