// Package api turns what the daemon knows into answers over HTTP: JSON under
// /api/v1/, Prometheus metrics, health, and a stream of server-sent events.
//
// It reads only. It counts nothing, keeps no figure but the highest value of each
// metric that must not fall, and knows neither the store nor the sources: what it
// needs of them is the Reader, which the daemon implements.
package api
