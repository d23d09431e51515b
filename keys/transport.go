package keys

import "net/http"

// Transport forwards the key that a request's context carries in the Question-Key header, and sends none when the context
// carries none. It never mints: it sits below retry loops, where a fresh key per try would hide every retry.
//
// A request that already has the header is sent as it is: whoever set it spoke for this request, and a second value would
// make the key malformed. The header is sent wherever the request goes, redirects included; it proves who asked, and is no
// credential.
type Transport struct {
	Base http.RoundTripper // nil means http.DefaultTransport
}

// RoundTrip implements http.RoundTripper. The caller's request is left as it is.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if key, ok := FromContext(req.Context()); ok && len(req.Header[Header]) == 0 {
		req = req.Clone(req.Context())
		if req.Header == nil {
			req.Header = make(http.Header)
		}
		req.Header.Set(Header, key)
	}
	return t.base().RoundTrip(req)
}

// CloseIdleConnections lets http.Client.CloseIdleConnections reach the base.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base != nil {
		return t.Base
	}
	return http.DefaultTransport
}
