package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// produced is how many records there were at a moment.
type produced struct {
	at time.Time
	n  int64
}

// latency produces records at a rate and looks how long it takes until they are in
// /api/v1/summary: the broker and the producer are in this process, on the same
// processors as the daemon.
func latency(dir, auditor string, rate int, lasts time.Duration) error {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, topic))
	if err != nil {
		return err
	}
	defer c.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.ProducerLinger(5*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	work, err := os.MkdirTemp(dir, "latency")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	config := fmt.Sprintf("sources: [{kafka: {brokers: [%q], topics: [%s]}, format: json}]\nkeys: {accept: [{field: my_id}]}\napi: {listen: \"127.0.0.1:0\"}\n", c.ListenAddrs()[0], topic)
	if err := os.WriteFile(filepath.Join(work, "auditor.yaml"), []byte(config), 0o600); err != nil {
		return err
	}
	cmd, url, err := startDaemon(auditor, work)
	if err != nil {
		return err
	}
	defer cmd.Process.Kill()

	var sent []produced
	var seen []produced
	ctx, stop := context.WithTimeout(context.Background(), lasts)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		const every = 20 * time.Millisecond
		tick := time.NewTicker(every)
		defer tick.Stop()
		for n, begun := int64(0), time.Now(); ctx.Err() == nil; <-tick.C {
			for due := int64(time.Since(begun).Seconds() * float64(rate)); n < due; n++ {
				now := time.Now().UTC()
				cl.Produce(context.Background(), &kgo.Record{Value: fmt.Appendf(nil,
					`{"time":%q,"method":"GET","path":"/v1/seats/%d","status":503,"duration_ms":12.5,"my_id":"question-%d","peer":"gateway","user_agent":"edge-gateway/2.31.0","bytes_sent":512}`,
					now.Format("2006-01-02T15:04:05.000Z"), n%50, n/3)}, nil)
			}
			sent = append(sent, produced{time.Now(), n})
		}
	}()
	for ctx.Err() == nil {
		if n, err := visible(url); err == nil && n > 0 {
			seen = append(seen, produced{time.Now(), n})
		}
		time.Sleep(10 * time.Millisecond)
	}
	<-ended
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return err
	}
	var took []float64
	i := 0
	for _, s := range sent {
		for i < len(seen) && seen[i].n < s.n {
			i++
		}
		if i == len(seen) {
			break
		}
		took = append(took, seen[i].at.Sub(s.at).Seconds())
	}
	if len(took) < 10 {
		return fmt.Errorf("too little became visible: %d of %d", len(took), len(sent))
	}
	slices.Sort(took)
	u := usageOf(cmd, time.Now())
	fmt.Printf("%d records/s for %v: visible after %.2f s (median), %.2f s (p99); daemon %.0f %% of a processor, %.0f MiB\n",
		rate, lasts, took[len(took)/2], took[len(took)*99/100], 100*u.cpu/lasts.Seconds(), u.rss)
	return nil
}

// visible is how many arrivals the summary shows over five minutes.
func visible(url string) (int64, error) {
	res, err := http.Get(url + "/api/v1/summary")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	var a struct {
		Dependencies []struct {
			Windows []struct {
				Arrivals int64 `json:"arrivals"`
			} `json:"windows"`
		} `json:"dependencies"`
	}
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		return 0, err
	}
	var n int64
	for _, d := range a.Dependencies {
		n = max(n, d.Windows[len(d.Windows)-1].Arrivals)
	}
	return n, nil
}

// startDaemon starts a daemon with the configuration in a directory, and returns
// where it answers.
func startDaemon(auditor, dir string) (cmd *exec.Cmd, url string, err error) {
	cmd = exec.Command(auditor, "run", "--config", filepath.Join(dir, "auditor.yaml"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	line := make([]byte, 256)
	n, err := out.Read(line)
	url, _, ok := strings.Cut(string(line[:n]), "/api")
	if i := strings.Index(url, "http://"); err == nil && ok && i >= 0 {
		return cmd, url[i:], nil
	}
	cmd.Process.Kill()
	cmd.Wait()
	return nil, "", fmt.Errorf("the daemon did not start: %s", said.String())
}
