package alerts

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// refused is an answer that is no success.
type refused struct {
	status int
	after  time.Duration // what it asks to wait; 0: nothing
}

func (r *refused) Error() string {
	if r.status/100 == 3 {
		return fmt.Sprintf("it answers %d, and redirects are not followed: name the address itself", r.status)
	}
	return fmt.Sprintf("it answers %d %s", r.status, http.StatusText(r.status))
}

// again says whether trying once more can help: a server's trouble and a busy one
// pass, what it says of the request does not.
func again(err error) bool {
	var r *refused
	if !errors.As(err, &r) {
		return true
	}
	return r.status >= 500 || r.status == http.StatusTooManyRequests || r.status == http.StatusRequestTimeout
}

// waits is what an error asks to wait.
func waits(err error) time.Duration {
	var r *refused
	if errors.As(err, &r) {
		return r.after
	}
	return 0
}

// post sends a text. Its errors hold nothing of the URL, and no word of the peer, which
// may repeat there what it was asked.
func post(ctx context.Context, client *http.Client, to string, header http.Header, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return errors.New("its URL cannot be asked")
	}
	for k, v := range header {
		r.Header[k] = v
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "auditor")
	res, err := client.Do(r)
	if err != nil {
		return failed(err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 == 2 {
		return nil
	}
	out := &refused{status: res.StatusCode}
	if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s > 0 {
		out.after = time.Duration(min(s, 3600)) * time.Second
	}
	return out
}

// The causes for which nothing is told, as they are shown and logged. There are no
// others: what net/http says of an answer quotes it.
var (
	errTimeout   = errors.New("it did not answer in time")
	errRefused   = errors.New("connection refused")
	errReset     = errors.New("the connection was broken off")
	errNoHost    = errors.New("no such host")
	errLookup    = errors.New("its name could not be looked up")
	errUntrusted = errors.New("TLS: its certificate is not valid or not trusted")
	errTLS       = errors.New("TLS: no agreement with it")
	errPlain     = errors.New("it answers https with http")
	errConnect   = errors.New("no connection to it")
	errBroken    = errors.New("what it answers is no HTTP response")
)

// failed is the cause of an error of net/http.
func failed(err error) error {
	var (
		dns     *net.DNSError
		op      *net.OpError
		untrust *tls.CertificateVerificationError
		alert   tls.AlertError
		record  tls.RecordHeaderError
		late    interface{ Timeout() bool }
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return errNoHost
	case errors.As(err, &late) && late.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return errTimeout
	case errors.As(err, &dns):
		return errLookup
	case errors.Is(err, http.ErrSchemeMismatch):
		return errPlain
	case errors.As(err, &untrust):
		return errUntrusted
	case errors.As(err, &alert), errors.As(err, &record), errors.As(err, &op) && op.Op == "remote error":
		return errTLS
	case errors.Is(err, syscall.ECONNREFUSED):
		return errRefused
	case errors.As(err, &op) && op.Op == "dial":
		return errConnect
	case errors.As(err, &op), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errReset
	}
	return errBroken
}

// transport makes a connection for each request: of what comes unasked on one that is
// kept, net/http writes the text into the log.
func transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableKeepAlives = true
	return t
}

// backoff is the pause before a retry: twice as long each time, and drawn, so that
// many who failed together do not come back together.
func backoff(failures int, most time.Duration) time.Duration {
	d := min(time.Duration(float64(time.Second)*math.Exp2(float64(min(failures, 30)-1))), most)
	return d/2 + rand.N(d/2+1)
}

// allowance is a retry budget: retries take one, deliveries give back a part, and time
// a little. What asks for politeness of others is no storm itself.
type allowance struct {
	left float64
	at   time.Time
}

const (
	retriesAtOnce    = 10
	retryPerDelivery = 0.2 // as budget.Ratio has it
	retryEvery       = time.Minute
)

func newAllowance(now time.Time) *allowance { return &allowance{retriesAtOnce, now} }

func (a *allowance) fill(now time.Time) {
	a.left = min(retriesAtOnce, a.left+now.Sub(a.at).Seconds()/retryEvery.Seconds())
	a.at = now
}

func (a *allowance) delivered() { a.left = min(retriesAtOnce, a.left+retryPerDelivery) }

// take takes one retry, or says how long until there is one.
func (a *allowance) take(now time.Time) (wait time.Duration) {
	if a.fill(now); a.left >= 1-1e-6 { // tenths do not add up to the digit
		a.left--
		return 0
	}
	return time.Duration((1 - a.left) * float64(retryEvery))
}

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func indexed(name string, i int) string { return name + "[" + strconv.Itoa(i) + "]" }
