package shim

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are labelled by route and status only: never by user, client, scope or table.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	waiting  prometheus.Gauge
	wakeups  *prometheus.CounterVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "synchro_requests_total", Help: "Requests answered, by route and HTTP status.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "synchro_request_seconds", Help: "Time to answer a request, by route, without the time that it was held as its client preferred.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}, []string{"route"}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "synchro_waiting_requests", Help: "Requests held until there is something to tell.",
		}),
		wakeups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "synchro_wakeups_total", Help: "Held requests that asked the database again, by reason: news, or recheck.",
		}, []string{"reason"}),
	}
	m.registry.MustRegister(m.requests, m.seconds, m.waiting, m.wakeups, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) observe(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
