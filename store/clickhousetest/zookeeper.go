package clickhousetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ZooKeeper is Debian's ZooKeeper (3.8) in a process of its own, empty: what replicas of
// ClickHouse agree through. It needs a Java runtime on the machine.
//
// Its packages have 6 MB, and are fetched as those of Debian's ClickHouse are.
type ZooKeeper struct {
	*Process
	port int
}

// zooKeeperPackages are those with a part of zooKeeperClasses.
var zooKeeperPackages = []string{"libzookeeper-java", "libslf4j-java", "libnetty-java", "libdropwizard-metrics-java", "libsnappy-java"}

var zooKeeperClasses = []string{"zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-simple", "netty-all", "metrics-core", "snappy-java"}

// zooKeeperConfig ends the session of a client that says nothing for five seconds: then
// others learn that a replica is gone.
const zooKeeperConfig = `tickTime=500
maxSessionTimeout=5000
dataDir=%s
clientPort=%d
clientPortAddress=127.0.0.1
admin.enableServer=false
4lw.commands.whitelist=srvr,mntr
forceSync=no
`

// StartZooKeeper starts a ZooKeeper, which the test's end stops. Where it or Java cannot
// be had the test is skipped, unless CI is set in the environment: then it fails.
func StartZooKeeper(t testing.TB) *ZooKeeper {
	t.Helper()
	root, err := cached("zookeeper", "root", func(ctx context.Context, temp string) error {
		return unpackDebian(ctx, temp, zooKeeperPackages)
	})
	if err != nil {
		missing(t, "Debian ZooKeeper", err)
	}
	java, err := exec.LookPath("java")
	if err != nil {
		missing(t, "Java runtime", err)
	}
	z, err := runZooKeeper(java, root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { z.stop(t) })
	return z
}

func runZooKeeper(java, root, dir string) (*ZooKeeper, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(config, fmt.Appendf(nil, zooKeeperConfig, filepath.Join(dir, "data"), ports[0]), 0o600); err != nil {
		return nil, err
	}
	var classes []string
	for _, name := range zooKeeperClasses {
		classes = append(classes, filepath.Join(root, "usr", "share", "java", name+".jar"))
	}
	cmd := exec.Command(java, "-Xmx128m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", strings.Join(classes, ":"), "org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
	p, err := start("ZooKeeper", cmd, dir, loopback(ports[0]))
	if err != nil {
		return nil, err
	}
	z := &ZooKeeper{p, ports[0]}
	// It takes connections before it takes sessions.
	if err := z.await("srvr", "Mode: standalone"); err != nil {
		p.Kill()
		return nil, fmt.Errorf("ZooKeeper does not start: %w\n%s", err, p.said())
	}
	return z, nil
}

// await returns when the answer to a word has some text in it.
func (z *ZooKeeper) await(word, text string) error {
	for end := time.Now().Add(processStart); ; time.Sleep(20 * time.Millisecond) {
		answer, err := z.ask(word)
		if strings.Contains(answer, text) {
			return nil
		}
		if time.Now().After(end) {
			return errors.Join(fmt.Errorf("to %s it says %q", word, answer), err)
		}
	}
}

// ask says one of the words that ZooKeeper answers without a session.
func (z *ZooKeeper) ask(word string) (string, error) {
	conn, err := net.Dial("tcp", loopback(z.port))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	// While it starts it may leave a word unanswered.
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte(word)); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// config is what a server's configuration says of it.
func (z *ZooKeeper) config() string {
	return fmt.Sprintf("<zookeeper><node><host>127.0.0.1</host><port>%d</port></node><session_timeout_ms>5000</session_timeout_ms></zookeeper>", z.port)
}
