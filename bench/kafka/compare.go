package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// spent is what one run of a program took.
type spent struct{ wall, cpu, rss float64 } // seconds, seconds, MiB

func usageOf(cmd *exec.Cmd, since time.Time) spent {
	u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return spent{
		time.Since(since).Seconds(),
		(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(),
		float64(u.Maxrss) / 1024,
	}
}

func compare(dir, auditor string, runs int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log := filepath.Join(dir, "access.json.log")
	names := []string{"auditor run", "auditor replay", "drop"}
	all := make([][]spent, len(names))
	records := 0
	for range runs {
		addr, n, stop, err := startBroker(self, log)
		if err != nil {
			return err
		}
		records = n
		for i, run := range []func() (spent, error){
			func() (spent, error) { return daemon(dir, auditor, addr, n) },
			func() (spent, error) {
				return wait(exec.Command(auditor, "replay", "--config", filepath.Join(dir, "auditor.yaml"), "--output", "json", log))
			},
			func() (spent, error) {
				return wait(exec.Command(self, "drop", "-broker", addr, "-records", strconv.Itoa(n)))
			},
		} {
			s, err := run()
			if err != nil {
				stop()
				return fmt.Errorf("%s: %w", names[i], err)
			}
			all[i] = append(all[i], s)
		}
		stop()
	}
	fmt.Printf("%d records in %d partitions, lz4; %d rounds, medians\n\n%8s %8s %12s %10s  program\n", records, partitions, runs, "wall s", "CPU s", "µs a record", "RSS MiB")
	for i, name := range names {
		m := median(all[i])
		fmt.Printf("%8.2f %8.2f %12.2f %10.0f  %s\n", m.wall, m.cpu, m.cpu/float64(records)*1e6, m.rss, name)
	}
	var ratios []float64
	for r := range runs {
		ratios = append(ratios, all[0][r].cpu*0.7/(all[1][r].cpu+all[2][r].cpu))
	}
	slices.Sort(ratios)
	fmt.Printf("\nrun / ((replay + drop) / 0.7): %.2f (%.2f..%.2f); at most 1 is wanted\n", ratios[runs/2], ratios[0], ratios[runs-1])
	return nil
}

func median(list []spent) spent {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b spent) int {
		switch {
		case a.cpu < b.cpu:
			return -1
		case a.cpu > b.cpu:
			return 1
		}
		return 0
	})
	return list[len(list)/2]
}

func wait(cmd *exec.Cmd) (spent, error) {
	cmd.Stderr = os.Stderr
	begun := time.Now()
	if err := cmd.Run(); err != nil {
		return spent{}, err
	}
	return usageOf(cmd, begun), nil
}

// startBroker starts a broker with the lines of a log.
func startBroker(self, log string) (addr string, records int, stop func(), err error) {
	cmd := exec.Command(self, "broker", "-log", log)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", 0, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", 0, nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", 0, nil, err
	}
	stop = func() { in.Close(); cmd.Wait() }
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		_, err = fmt.Sscan(line, &addr, &records)
	}
	if err != nil {
		stop()
		return "", 0, nil, fmt.Errorf("the broker did not start: %w", err)
	}
	return addr, records, stop, nil
}

// daemon runs the daemon until it has counted every record and closed every second
// that these allow to close, and stops it, which stores what is closed.
func daemon(dir, auditor, addr string, records int) (spent, error) {
	work, err := os.MkdirTemp(dir, "daemon")
	if err != nil {
		return spent{}, err
	}
	defer os.RemoveAll(work)
	originators, err := filepath.Abs(filepath.Join(dir, "originators.yaml"))
	if err != nil {
		return spent{}, err
	}
	config := fmt.Sprintf(`dependency: {field: dependency}
sources: [{kafka: {brokers: [%q], topics: [%s]}, format: json}]
keys: {originators: %q, horizon: 2m}
time: {lateness: %s}
api: {listen: "127.0.0.1:0"}
`, addr, topic, originators, lateness)
	if err := os.WriteFile(filepath.Join(work, "auditor.yaml"), []byte(config), 0o600); err != nil {
		return spent{}, err
	}
	begun := time.Now()
	cmd, url, err := startDaemon(auditor, work)
	if err != nil {
		return spent{}, err
	}
	defer cmd.Process.Kill()
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if n, closed, err := counted(url + "/api/v1/sources"); err == nil && n == records && closed {
			break
		}
		if time.Now().After(end) {
			return spent{}, errors.New("not all records were counted, and their seconds closed, within 5 minutes")
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		return spent{}, err
	}
	if err := cmd.Wait(); err != nil {
		return spent{}, err
	}
	return usageOf(cmd, begun), nil
}

// lateness is how long a second stays open. It is short, so that most of the seconds
// are closed and stored.
const lateness = 20 * time.Second

// counted says how many records the daemon has counted, and whether every second is
// closed that they allow to close: those that ended a lateness before the least
// watermark of the partitions.
func counted(url string) (n int, closed bool, err error) {
	res, err := http.Get(url)
	if err != nil {
		return 0, false, err
	}
	defer res.Body.Close()
	var a struct {
		CompleteUntil time.Time `json:"complete_until"`
		Sources       []struct {
			Counted    int `json:"counted"`
			Partitions []struct {
				Watermark time.Time `json:"watermark"`
			} `json:"partitions"`
		} `json:"sources"`
	}
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		return 0, false, err
	}
	var least time.Time
	for _, s := range a.Sources {
		n += s.Counted
		for _, p := range s.Partitions {
			if least.IsZero() || p.Watermark.Before(least) {
				least = p.Watermark
			}
		}
	}
	return n, a.CompleteUntil.After(least.Add(-lateness)), nil
}
