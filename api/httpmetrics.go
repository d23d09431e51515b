package api

import (
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of the API itself.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	streams  prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "auditor_http_requests_total", Help: "Requests to the API, by route and status.",
		}, []string{"route", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "auditor_http_request_duration_seconds", Help: "Time to answer requests to the API, streams left out.",
			Buckets: []float64{0.005, 0.025, 0.1, 0.5, 2.5, 10},
		}, []string{"route"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "auditor_http_streams", Help: "Clients of the stream of server-sent events.",
		}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.streams} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of the API: %w", err)
		}
	}
	return m, nil
}

// observe counts one request. The route is a pattern, so there are few.
func (m *metrics) observe(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	if route != "/api/v1/stream" {
		m.seconds.WithLabelValues(route).Observe(took.Seconds())
	}
}

// metricsLog gives promhttp's errors to the log.
type metricsLog struct{ log *slog.Logger }

func (l metricsLog) Println(v ...any) { l.log.Error("metrics", "error", fmt.Sprint(v...)) }
