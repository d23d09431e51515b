package clickhousetest

import (
	"fmt"
	"strings"
	"testing"
)

// Cluster are servers of Debian's as one cluster of one shard, each with a replica of
// it.
type Cluster struct {
	// Name is that of the cluster in the servers' configuration.
	Name    string
	Servers []*Debian
}

// StartCluster starts some servers that agree through a ZooKeeper. It needs what
// StartDebian and StartZooKeeper need.
func StartCluster(t testing.TB, n int) *Cluster {
	t.Helper()
	z := StartZooKeeper(t)
	ports := freePorts(t, 3*n)
	c := &Cluster{Name: "fleet"}
	var replicas strings.Builder
	for i := range n {
		fmt.Fprintf(&replicas, "<replica><host>127.0.0.1</host><port>%d</port><user>%s</user><password>%s</password></replica>", ports[3*i], DebianUser, DebianPassword)
	}
	for i := range n {
		c.Servers = append(c.Servers, startDebian(t, ports[3*i], ports[3*i+1], fmt.Sprintf("  %s\n"+
			"  <remote_servers><%s><shard><internal_replication>true</internal_replication>%s</shard></%s></remote_servers>\n"+
			"  <macros><shard>1</shard><replica>replica-%d</replica></macros>\n"+
			"  <distributed_ddl><path>/clickhouse/ddl</path></distributed_ddl>\n"+
			"  <interserver_http_host>127.0.0.1</interserver_http_host>\n"+
			"  <interserver_http_port>%d</interserver_http_port>\n", z.config(), c.Name, &replicas, c.Name, i+1, ports[3*i+2])))
	}
	// Who is asked to do something on the cluster crashes unless it waits for such work.
	z.says(t, "mntr", fmt.Sprintf("zk_watch_count\t%d\n", n))
	return c
}
