package alerts

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"
)

// WebhookSchema names the form of what a webhook gets.
const WebhookSchema = "auditor.alert/1"

// Notice is what a webhook gets of one change.
type Notice struct {
	Schema string `json:"schema"`
	// ID is the same whenever the same change is sent: by it a receiver knows what it
	// has got already.
	ID          string            `json:"id"`
	Status      State             `json:"status"` // firing or resolved
	Labels      map[string]string `json:"labels"` // alertname among them
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"starts_at"`
	EndsAt      *time.Time        `json:"ends_at"` // null while it fires
}

// The headers of a webhook. Signature is "v1=" and the hexadecimal HMAC-SHA-256 of the
// timestamp, a dot and the body under the webhook's secret; the timestamp is that of
// the try, in Unix seconds, so that a receiver can refuse an old one.
const (
	SignatureHeader = "Auditor-Signature"
	TimestampHeader = "Auditor-Timestamp"
	NoticeHeader    = "Auditor-Notice" // the ID
)

// Sign is the value of the signature header.
func Sign(secret []byte, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(timestamp))
	mac.Write([]byte("."))
	mac.Write(body)
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}

// webhook tells one URL of each change, in order, and tries again within a budget.
type webhook struct {
	to      Webhook
	client  *http.Client
	log     *slog.Logger
	counts  *counts
	changes chan pendingNotice
	// unheard are alerts that fired before it was there, by their key and since when:
	// that they are over is no word for who never heard of them.
	unheard map[string]time.Time
}

type pendingNotice struct {
	id   string
	body []byte
	at   time.Time
}

const (
	// noticeFor is how old a notice may become: after that it would mislead.
	noticeFor = 15 * time.Minute
	// longestPause is that between two tries of one.
	longestPause = time.Minute
)

func newWebhook(to Webhook, client *http.Client, log *slog.Logger, c *counts, current []Alert) *webhook {
	s := &webhook{to, client, log, c, make(chan pendingNotice, mostWaiting), map[string]time.Time{}}
	for i := range current {
		if a := &current[i]; a.State == Firing {
			s.unheard[a.key()] = a.Since
		}
	}
	return s
}

func (s *webhook) tell(_, changed []Alert) {
	for i := range changed {
		a := &changed[i]
		since, unheard := s.unheard[a.key()]
		delete(s.unheard, a.key())
		if unheard && a.State == Resolved && since.Equal(a.Since) {
			continue
		}
		select {
		case s.changes <- newNotice(a):
		default:
			s.counts.dropped.Add(1)
		}
	}
}

func newNotice(a *Alert) pendingNotice {
	sum := sha256.Sum256([]byte(a.key() + "\x00" + string(a.State) + "\x00" + a.Since.UTC().Format(time.RFC3339Nano)))
	n := Notice{WebhookSchema, hex.EncodeToString(sum[:16]), a.State, named(a), annotations(a), a.Since, nil}
	if a.State == Resolved {
		n.EndsAt = &a.Ended
	}
	body, err := json.Marshal(&n)
	if err != nil {
		panic(err) // of texts and times alone
	}
	return pendingNotice{n.ID, body, time.Now()}
}

func (s *webhook) run(ctx context.Context) {
	budget := newAllowance(time.Now())
	for {
		select {
		case <-ctx.Done():
			if n := len(s.changes); n > 0 {
				s.counts.dropped.Add(uint64(n))
				s.counts.logger(s.log).Warn("a webhook was not told of everything before the end", "notices", n)
			}
			return
		case n := <-s.changes:
			s.deliver(ctx, &n, budget)
		}
	}
}

// deliver sends one notice until it is taken, is refused for good, or is too old.
func (s *webhook) deliver(ctx context.Context, n *pendingNotice, budget *allowance) {
	for failures := 0; ; {
		if time.Since(n.at) >= noticeFor {
			s.giveUp(nil)
			return
		}
		err := s.send(ctx, n)
		if ctx.Err() != nil && err != nil {
			s.counts.dropped.Add(1)
			s.counts.logger(s.log).Warn("a webhook was not told of everything before the end", "notices", 1)
			return
		}
		s.counts.ended(err)
		if err == nil {
			budget.delivered()
			return
		}
		if !again(err) {
			s.giveUp(err)
			return
		}
		if failures++; failures == 1 {
			s.counts.logger(s.log).Warn("a webhook was not told; it is tried again", "error", err)
		}
		if !sleep(ctx, max(backoff(failures, longestPause), waits(err))) {
			continue
		}
		for wait := budget.take(time.Now()); wait > 0; wait = budget.take(time.Now()) {
			if !sleep(ctx, wait) {
				break
			}
		}
	}
}

func (s *webhook) giveUp(err error) {
	s.counts.dropped.Add(1)
	if err != nil {
		s.counts.logger(s.log).Error("a webhook was not told, and is not tried again", "error", err)
	} else {
		s.counts.logger(s.log).Error("a webhook was not told for so long that it is not tried any more", "for", noticeFor)
	}
}

func (s *webhook) send(ctx context.Context, n *pendingNotice) error {
	header := http.Header{}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	header.Set(TimestampHeader, stamp)
	header.Set(NoticeHeader, n.id)
	if s.to.Secret != "" {
		header.Set(SignatureHeader, Sign([]byte(s.to.Secret), stamp, n.body))
	}
	return post(ctx, s.client, s.to.URL, header, n.body)
}
