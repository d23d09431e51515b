// Package deploy_test holds what is shipped for running the auditor to what can be
// known without an engine: every configuration in it is one, what refers to a file, a
// port or a service refers to one that there is, and systemd takes the unit.
package deploy_test

import (
	"bytes"
	"debug/elf"
	"encoding/xml"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/targetside/auditor/config"
)

// parse reads a configuration, every variable of the environment being set.
func parse(t *testing.T, name string, text []byte) *config.Config {
	t.Helper()
	c, err := config.Parse(name, text, func(string) (string, bool) { return "set", true })
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return c
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func port(t *testing.T, address string) int {
	t.Helper()
	_, p, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(p)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCompose(t *testing.T) {
	var f struct {
		Services map[string]struct {
			Image     string
			Build     map[string]string
			DependsOn map[string]any `yaml:"depends_on"`
			Volumes   []string
			Ports     []string
		}
		Volumes map[string]any
	}
	decoder := yaml.NewDecoder(bytes.NewReader(read(t, "compose", "compose.yaml")))
	if err := decoder.Decode(&f); err != nil {
		t.Fatal(err)
	}
	c := parse(t, "compose/auditor.yaml", read(t, "compose", "auditor.yaml"))
	addresses := slices.Concat(c.Sources[0].Kafka.Brokers, c.Store.ClickHouse.Addr)
	for name, least := range map[string]int{"prometheus.yaml": 2, "grafana-datasources.yaml": 1} {
		found := regexp.MustCompile(`[a-z]+:[0-9]+`).FindAllString(string(read(t, "compose", name)), -1)
		if len(found) < least {
			t.Errorf("%s names only %v", name, found)
		}
		addresses = append(addresses, found...)
	}
	addresses = append(addresses, grafana(t, c.Store.ClickHouse.Database))
	for _, address := range addresses {
		host, _, err := net.SplitHostPort(address)
		if _, ok := f.Services[host]; err != nil || !ok {
			t.Errorf("%s is named, which is no service", address)
		}
	}
	for name, s := range f.Services {
		if !regexp.MustCompile(`^[a-z/-]+:v?[0-9][0-9.]*$|^auditor$`).MatchString(s.Image) {
			t.Errorf("%s: image %q has no fixed version", name, s.Image)
		}
		for other := range s.DependsOn {
			if _, ok := f.Services[other]; !ok {
				t.Errorf("%s depends on %s, which is no service", name, other)
			}
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if _, named := f.Volumes[from]; named {
				continue
			}
			if _, err := os.Stat(filepath.Join("compose", from)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: port %s is not of this machine alone", name, p)
			}
		}
		if s.Build != nil {
			if _, err := os.Stat(filepath.Join("compose", s.Build["context"], s.Build["dockerfile"])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if got := f.Services["auditor"].Ports; !slices.Equal(got, []string{"127.0.0.1:9464:9464"}) || port(t, c.API.Listen) != 9464 {
		t.Errorf("ports are %v, the API's %s", got, c.API.Listen)
	}
}

// grafana is where Grafana asks ClickHouse. It does so of the kind of source that the
// dashboards want, in the database that the auditor writes, as a user that there is and
// that may not write.
func grafana(t *testing.T, database string) (address string) {
	t.Helper()
	var sources struct {
		Datasources []struct {
			Type     string
			JSONData struct {
				Host, Protocol, Username string
				Port                     int
				DefaultDatabase          string `yaml:"defaultDatabase"`
			} `yaml:"jsonData"`
			Secure struct{ Password string } `yaml:"secureJsonData"`
		}
	}
	var users struct {
		Readonly int `xml:"profiles>grafana>readonly"`
		Grafana  struct {
			Password string   `xml:"password"`
			Profile  string   `xml:"profile"`
			Grants   []string `xml:"grants>query"`
		} `xml:"users>grafana"`
	}
	if err := yaml.Unmarshal(read(t, "compose", "grafana-datasources.yaml"), &sources); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(read(t, "compose", "clickhouse-grafana.xml"), &users); err != nil {
		t.Fatal(err)
	}
	compose := string(read(t, "compose", "compose.yaml"))
	for _, s := range sources.Datasources {
		if s.Type == "prometheus" {
			continue
		}
		j, u := s.JSONData, users.Grafana
		if j.Username != "grafana" || u.Password != s.Secure.Password || u.Profile != "grafana" || users.Readonly == 0 || j.Protocol != "native" || j.DefaultDatabase != database {
			t.Errorf("the data source %+v does not fit the users %+v and the database %s", s, users, database)
		}
		if !slices.Contains(u.Grants, "GRANT SELECT ON "+database+".*") {
			t.Errorf("%s may not read %s", j.Username, database)
		}
		dashboard := string(read(t, "..", "dashboards", "grafana", "clickhouse-overview.json"))
		if !strings.Contains(compose, "GF_PLUGINS_PREINSTALL: "+s.Type) || !strings.Contains(dashboard, `"type": "`+s.Type+`"`) {
			t.Errorf("the plugin %s is not installed, or is not the one of the dashboards", s.Type)
		}
		address = net.JoinHostPort(j.Host, strconv.Itoa(j.Port))
	}
	return address
}

func TestKubernetes(t *testing.T) {
	decoder := yaml.NewDecoder(bytes.NewReader(read(t, "kubernetes", "auditor.yaml")))
	byKind := map[string]map[string]any{}
	for {
		var doc map[string]any
		if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		byKind[doc["kind"].(string)] = doc
	}
	// at walks into maps and lists.
	at := func(v any, path ...any) any {
		for _, p := range path {
			switch p := p.(type) {
			case string:
				v = v.(map[string]any)[p]
			case int:
				v = v.([]any)[p]
			}
		}
		return v
	}
	c := parse(t, "ConfigMap", []byte(at(byKind["ConfigMap"], "data", "auditor.yaml").(string)))
	pod := at(byKind["StatefulSet"], "spec", "template", "spec")
	box := at(pod, "containers", 0)
	ports := map[string]int{}
	for _, p := range at(box, "ports").([]any) {
		ports[at(p, "name").(string)] = at(p, "containerPort").(int)
	}
	if ports["api"] != port(t, c.API.Listen) || ports["push"] != port(t, c.Sources[0].HTTP.Listen) {
		t.Errorf("the container's ports are %v, and auditor.yaml says %s and %s", ports, c.API.Listen, c.Sources[0].HTTP.Listen)
	}
	for _, p := range at(byKind["Service"], "spec", "ports").([]any) {
		if name := at(p, "targetPort").(string); ports[name] != at(p, "port").(int) {
			t.Errorf("the service has port %v for %s, the container %d", at(p, "port"), name, ports[name])
		}
	}
	volumes := map[string]bool{}
	for _, v := range at(pod, "volumes").([]any) {
		volumes[at(v, "name").(string)] = true
	}
	for _, v := range at(byKind["StatefulSet"], "spec", "volumeClaimTemplates").([]any) {
		volumes[at(v, "metadata", "name").(string)] = true
	}
	mounts := map[string]string{}
	for _, m := range at(box, "volumeMounts").([]any) {
		name := at(m, "name").(string)
		if mounts[at(m, "mountPath").(string)] = name; !volumes[name] {
			t.Errorf("volume %s is mounted, and there is none", name)
		}
	}
	if mounts["/etc/auditor"] != "config" || mounts["/var/lib/auditor"] != "state" || mounts[filepath.Dir(c.Keys.Originators)] != "secrets" {
		t.Errorf("mounted are %v", mounts)
	}
	if at(box, "args", 2) != "/etc/auditor/auditor.yaml" {
		t.Errorf("args are %v", at(box, "args"))
	}
	for _, probe := range []string{"readinessProbe", "livenessProbe"} {
		if at(box, probe, "httpGet", "port") != "api" {
			t.Errorf("%s does not ask the API", probe)
		}
	}
	labels := at(byKind["StatefulSet"], "spec", "template", "metadata", "labels").(map[string]any)
	for kind, selector := range map[string]any{
		"Service": at(byKind["Service"], "spec", "selector"), "StatefulSet": at(byKind["StatefulSet"], "spec", "selector", "matchLabels"),
		"NetworkPolicy": at(byKind["NetworkPolicy"], "spec", "podSelector", "matchLabels"),
	} {
		for k, v := range selector.(map[string]any) {
			if labels[k] != v {
				t.Errorf("%s selects %s=%v, which the pod is not", kind, k, v)
			}
		}
	}
}

// systemd's own check, with the program where the unit says that it is.
func TestSystemd(t *testing.T) {
	parse(t, "systemd/auditor.yaml", read(t, "systemd", "auditor.yaml"))
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("systemd-analyze is not installed: it is in Debian's package systemd")
		}
		t.Skip("systemd-analyze is not installed: it is in Debian's package systemd")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "auditor")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(dir, "auditor.service")
	text := bytes.ReplaceAll(read(t, "systemd", "auditor.service"), []byte("/usr/local/bin/auditor"), []byte(program))
	if err := os.WriteFile(unit, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput()
	if err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
}

// What goes into the image is the static program that the Dockerfile builds.
func TestImage(t *testing.T) {
	text := string(read(t, "Dockerfile"))
	for _, line := range []string{"FROM scratch", "USER 65532:65532", "RUN CGO_ENABLED=0 go build -trimpath -ldflags=-s -o /auditor ./cmd/auditor"} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("the Dockerfile has no line %q", line)
		}
	}
	version := regexp.MustCompile(`(?m)^FROM golang:([0-9]+\.[0-9]+)-`).FindStringSubmatch(text)
	mod := regexp.MustCompile(`(?m)^go ([0-9]+\.[0-9]+)`).FindStringSubmatch(string(read(t, "..", "go.mod")))
	if version == nil || mod == nil || version[1] != mod[1] {
		t.Errorf("the Dockerfile builds with Go %v, go.mod wants %v", version, mod)
	}
	program := filepath.Join(t.TempDir(), "auditor")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s", "-o", program, "./cmd/auditor")
	build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// Nothing of this machine's is there in the image: no library, no zone, no user.
	run := exec.Command(program, "version")
	run.Env = []string{}
	if out, err := run.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("auditor")) {
		t.Errorf("%v: %s", err, out)
	}
	if runtime.GOOS != "linux" {
		return
	}
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) > 0 || slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Errorf("it is not static: %v, %v", libraries, err)
	}
}
