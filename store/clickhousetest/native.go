package clickhousetest

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// Native is the engine of Server in a process of its own: a server that speaks the
// native protocol over TCP, to several connections at once, and is empty. It has the
// one user that Server has.
//
// The library has ClickHouse's clickhouse-local, which listens if it is asked to. It
// does not keep replicas in step, has nobody to carry out ON CLUSTER, and ends when a
// client asks to be connected to a database that is not there.
type Native struct {
	*Process
	// Addr is where it speaks the native protocol, in the clear.
	Addr string
}

// StartNative starts a server, which the test's end stops. Where the engine cannot be
// had the test is skipped, unless CI is set in the environment: then it fails.
func StartNative(t testing.TB) *Native { return startNative(t, nil) }

// StartNativeOf is StartNative of a server that is a replica of a cluster's: it makes
// replicated tables, and notes them in a ZooKeeper, where other replicas see them. It
// takes no rows into them.
func StartNativeOf(t testing.TB, z *ZooKeeper, replica string) *Native {
	config := "<clickhouse>" + z.config() + "<macros><shard>1</shard><replica>" + replica + "</replica></macros>" +
		"<default_replica_path>/clickhouse/tables/{shard}/{database}/{table}</default_replica_path></clickhouse>"
	return startNative(t, []byte(config))
}

func startNative(t testing.TB, config []byte) *Native {
	t.Helper()
	path, err := library()
	if err != nil {
		missing(t, "ClickHouse engine", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, port := t.TempDir(), freePorts(t, 1)[0]
	args := []string{"--path=" + dir + "/data", "--listen_host=127.0.0.1", fmt.Sprintf("--tcp_port=%d", port)}
	if config != nil {
		if err := os.WriteFile(dir+"/config.xml", config, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config-file="+dir+"/config.xml")
	}
	// It listens for as long as its first client reads: until its input ends, which it
	// does with this process.
	cmd := exec.Command(self, append(args, "--query=SYSTEM START LISTEN TCP; SELECT count() FROM file('-', 'LineAsString')")...)
	cmd.Env = append(os.Environ(), libraryVariable+"="+path)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	addr := loopback(port)
	return &Native{start(t, "the ClickHouse engine", cmd, dir, addr), addr}
}

// libraryVariable is, in the environment of a test's binary, the engine's library: the
// binary is then clickhouse-local, with its arguments, and no test.
const libraryVariable = "CLICKHOUSETEST_LIBRARY"

func init() {
	if path := os.Getenv(libraryVariable); path != "" {
		if err := local(path, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}
