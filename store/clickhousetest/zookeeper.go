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
	dir, port := t.TempDir(), freePorts(t, 1)[0]
	config := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(config, fmt.Appendf(nil, zooKeeperConfig, filepath.Join(dir, "data"), port), 0o600); err != nil {
		t.Fatal(err)
	}
	var classes []string
	for _, name := range zooKeeperClasses {
		classes = append(classes, filepath.Join(root, "usr", "share", "java", name+".jar"))
	}
	cmd := exec.Command(java, "-Xmx128m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", strings.Join(classes, ":"), "org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
	z := &ZooKeeper{start(t, "ZooKeeper", cmd, dir, loopback(port)), port}
	z.says(t, "srvr", "Mode: standalone") // it takes connections before it takes sessions
	return z
}

// says returns when the answer to a word has some text in it.
func (z *ZooKeeper) says(t testing.TB, word, text string) {
	t.Helper()
	z.await(t, func() error {
		answer, err := z.ask(word)
		if strings.Contains(answer, text) {
			return nil
		}
		return errors.Join(fmt.Errorf("to %s it says %q", word, answer), err)
	})
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
