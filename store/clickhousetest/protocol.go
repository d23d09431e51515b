package clickhousetest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/compress"
	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// request is one request of ClickHouse's HTTP protocol. The statement is in the
// parameter "query" or in the body; in the first case the body has the rows of an
// insert, as native blocks of revision 0.
type request struct {
	statement string
	data      []byte
	in        session
	revision  uint64 // of the blocks of the answer
	compress  bool
}

// session is what a query depends on besides the tables.
type session struct {
	database string
	settings map[string]string // with the parameters of the query
}

// notSettings are the parameters of requests that are no settings of the query.
var notSettings = []string{
	"query", "database", "default_format", "client_protocol_version", "compress", "decompress",
	"query_id", "network_compression_method", "enable_http_compression", "quota_key",
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/ping" {
		_, _ = io.WriteString(w, "Ok.\n")
		return
	}
	work := s.begin()
	q, err := read(r)
	work.end()
	if err != nil {
		refuse(w, err)
		return
	}
	s.runHooks(q.statement)
	f, faulty := s.next(q.statement)
	if faulty && !f.Done {
		fail(w, f)
		return
	}
	if !s.admits(r) {
		refuse(w, errPassword)
		return
	}
	out, err := s.engine.run(q.in, q.statement, q.data, "Native")
	if faulty {
		fail(w, f)
		return
	}
	work = s.begin()
	defer work.end()
	if err == nil {
		out, err = q.answer(out)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(out)))
	_, _ = w.Write(out)
}

func (s *Server) admits(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	user, password, _ := r.BasicAuth()
	return user == User && password == s.password
}

func read(r *http.Request) (*request, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if r.Header.Get("Content-Encoding") != "" || strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return nil, exception{48, "neither Content-Encoding nor external tables are understood here. (NOT_IMPLEMENTED)"}
	}
	p := r.URL.Query()
	q := &request{compress: p.Get("compress") == "1", in: session{cmp.Or(p.Get("database"), "default"), map[string]string{}}}
	if v := p.Get("client_protocol_version"); v != "" {
		if q.revision, err = strconv.ParseUint(v, 10, 64); err != nil {
			return nil, err
		}
	}
	if p.Get("decompress") == "1" {
		var plain bytes.Buffer
		if _, err := plain.ReadFrom(compress.NewReader(bytes.NewReader(body))); err != nil && !errors.Is(err, io.EOF) {
			return nil, err // its reader wraps the end
		}
		body = plain.Bytes()
	}
	if q.statement = p.Get("query"); q.statement == "" {
		q.statement = string(body)
	} else {
		q.data = body
	}
	for name := range p {
		if !slices.Contains(notSettings, name) {
			q.in.settings[name] = p.Get(name)
		}
	}
	return q, nil
}

func quoted(s string, by byte) string {
	return string(by) + strings.NewReplacer(`\`, `\\`, string(by), `\`+string(by)).Replace(s) + string(by)
}

// answer brings the native blocks of a result into the form that was asked for.
func (q *request) answer(result []byte) ([]byte, error) {
	var out []byte
	r := chproto.NewReader(bytes.NewReader(result))
	w := compress.NewWriter(compress.LevelZero, compress.LZ4)
	for {
		block := proto.Block{ServerContext: &column.ServerContext{Timezone: time.UTC}}
		if err := block.Decode(r, 0); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("the engine's answer to %.200q: %w", q.statement, err)
		}
		buffer := new(chproto.Buffer)
		if err := block.Encode(buffer, q.revision); err != nil {
			return nil, fmt.Errorf("the answer to %.200q: %w", q.statement, err)
		}
		b := buffer.Buf
		if q.compress {
			if err := w.Compress(b); err != nil {
				return nil, err
			}
			b = slices.Clone(w.Data)
		}
		out = append(out, b...)
	}
}

var codeRe = regexp.MustCompile(`^Code: (\d+)\.`)

// refuse answers with an exception of the engine.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if m := codeRe.FindStringSubmatch(err.Error()); m != nil {
		w.Header().Set("X-ClickHouse-Exception-Code", m[1])
		if m[1] == "516" {
			status = http.StatusForbidden
		}
	}
	http.Error(w, err.Error(), status)
}

func fail(w http.ResponseWriter, f Fault) {
	if f.Code == 0 {
		cut(w)
		return
	}
	refuse(w, exception{f.Code, f.Message})
}
