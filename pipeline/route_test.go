package pipeline

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestRoute(t *testing.T) {
	r := newRouter([]string{"GET /seats/{id}", "/orders/{id}/lines", "/orders/{id}/lines", "POST /seats/{id}/hold", "/static/"})
	for _, c := range [][3]string{
		{"GET", "/seats/7", "GET /seats/{id}"},
		{"GET", "/seats/abc", "GET /seats/{id}"},
		{"GET", "/seats/", "GET /seats/"},
		{"GET", "/seats", "GET /seats"},
		{"PUT", "/seats/abc", "PUT /seats/abc"},
		{"PUT", "/orders/a-b/lines", "PUT /orders/{id}/lines"},
		{"", "/orders/a-b/lines", "/orders/{id}/lines"},
		{"GET", "/orders/1/lines/", "GET /orders/{id}/lines/"},
		{"GET", "/static/", "GET /static/"},
		{"GET", "/static/x", "GET /static/x"},
		{"GET", "/a/12/b", "GET /a/{id}/b"},
		{"GET", "/a/12b/b", "GET /a/12b/b"},
		{"GET", "/a/deadbeef", "GET /a/{id}"},
		{"GET", "/a/DEADbeef01", "GET /a/{id}"},
		{"GET", "/a/deadbee", "GET /a/deadbee"},
		{"GET", "/a/123e4567-e89b-12d3-a456-426614174000/x", "GET /a/{id}/x"},
		{"GET", "/a/123e4567-e89b-12d3-a456426614174000", "GET /a/123e4567-e89b-12d3-a456426614174000"},
		{"GET", "//1//", "GET //{id}//"},
		{"GET", "/", "GET /"},
		{"GET", "", "GET "},
		{"OPTIONS", "*", "OPTIONS *"},
		{"POST", "/pkg.Service/Method", "POST /pkg.Service/Method"},
		{"GET", "7/8", "GET {id}/{id}"},
	} {
		if got := string(r.route(nil, []byte(c[0]), []byte(c[1]))); got != c[2] {
			t.Errorf("%s %s is of route %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

func TestWorkload(t *testing.T) {
	c := newCallers(Peers{Map: map[string]string{
		"10.0.0.0/8": "net", "10.1.0.0/16": "bff", "10.1.2.3": "batch", "2001:db8::/32": "six",
		"spiffe://td/ns/a/sa/web": "web", "10.9.9.9:80": "by port",
	}, CallerTimeout: map[string]time.Duration{}})
	for _, x := range [][2]string{
		{"10.1.2.3", "batch"}, {"10.1.2.3:443", "batch"}, {"10.1.2.4:1", "bff"}, {"10.2.0.1", "net"}, {"11.0.0.1", "11.0.0.1"},
		{"11.0.0.1:8080", "11.0.0.1"}, {"[2001:db8::1]:80", "six"}, {"2001:db8::1", "six"}, {"2001:db9::1%eth0", "2001:db9::1"},
		{"::ffff:10.1.0.1", "bff"}, {"spiffe://td/ns/a/sa/web", "web"}, {"spiffe://td/ns/a/sa/x", "spiffe://td/ns/a/sa/x"},
		{"10.9.9.9:80", "by port"}, {"10.9.9.9:81", "net"}, {"", ""}, {"unix:", "unix:"},
	} {
		if got := c.workload(x[0]); got != x[1] {
			t.Errorf("%q is workload %q, want %q", x[0], got, x[1])
		}
	}
}

// FuzzRoute holds folding to what it promises: the route of a folded path is
// itself, ids fold to one route whatever they are, and nothing but a segment ever
// disappears.
func FuzzRoute(f *testing.F) {
	f.Add("GET", "/seats/7", "00000001")
	f.Add("", "//a/{id}/123e4567-e89b-12d3-a456-426614174000", "9")
	f.Add("POST", "a", "deadbeef")
	f.Add("0", "0", "0")
	f.Add("GET", "seats/7", "7")
	f.Add("", "orders/7/lines", "7")
	f.Fuzz(func(t *testing.T, method, path, id string) {
		r := newRouter([]string{"GET /seats/{id}", "/orders/{id}/lines"})
		got := string(r.route(nil, []byte(method), []byte(path)))
		if again := r.route([]byte("x"), []byte(method), []byte(path)); string(again) != "x"+got {
			t.Errorf("appended to something, the route is %q, not %q", again, got)
		}
		prefix := ""
		if isMethod([]byte(method)) {
			prefix = method + " "
		}
		folded, ok := strings.CutPrefix(got, prefix)
		if !ok {
			t.Fatalf("route %q has lost the method %q", got, method)
		}
		if slashes := func(s string) int { return strings.Count(strings.TrimPrefix(s, "/"), "/") }; slashes(folded) != slashes(path) {
			t.Errorf("path %q has other segments than its route %q", path, folded)
		}
		if again := string(r.route(nil, []byte(method), []byte(folded))); again != got {
			t.Errorf("route %q is itself of route %q", got, again)
		}
		if looksLikeID([]byte(id)) && !bytes.ContainsAny([]byte(id), "/") {
			one := string(r.route(nil, []byte(method), []byte(path+"/"+id)))
			if two := string(r.route(nil, []byte(method), []byte(path+"/77"))); one != two {
				t.Errorf("%q and 77 are of two routes, %q and %q", id, one, two)
			}
		}
	})
}

func FuzzWorkload(f *testing.F) {
	f.Add("10.1.2.3:80")
	f.Add("[::1]:80")
	f.Fuzz(func(t *testing.T, raw string) {
		c := newCallers(Peers{Map: map[string]string{"10.0.0.0/8": "net"}})
		got := c.workload(raw)
		if a, err := netip.ParseAddr(got); err == nil && a.Zone() == "" && !a.Is4In6() {
			if c.workload(got) != got && c.workload(got) != "net" {
				t.Errorf("workload %q of %q is itself %q", got, raw, c.workload(got))
			}
		}
	})
}

// A question key in a path or in place of a method never names a route: reports go
// into incident documents, and a key is good for a day.
func TestKeysNameNoRoute(t *testing.T) {
	r := newRouter(nil)
	for _, c := range [][3]string{
		{"GET", "/a/qk1.shop.a.mjuohs00.AAECAwQFBgcICQoL.h5NXknk241yns9KPlE1kjA", "GET /a/{id}"},
		{"GET", "/qk2.shop.a.mjuohs00.x/b", "GET /{id}/b"},
		{"qk1.shop.a.mjuohs00.AAECAwQFBgcICQoL.h5NXknk241yns9KPlE1kjA", "/a", "/a"},
		{"POST", "/qk/1", "POST /qk/{id}"},
		{"M-SEARCH", "/", "M-SEARCH /"},
	} {
		if got := string(r.route(nil, []byte(c[0]), []byte(c[1]))); got != c[2] {
			t.Errorf("%s %s is %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
