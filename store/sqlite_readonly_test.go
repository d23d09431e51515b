//go:build linux

package store_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/targetside/auditor/store"
)

const nobody = 65534

func TestSQLiteReadOnly(t *testing.T) {
	if os.Getuid() == 0 {
		asNobody(t)
		return
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "a.db")
	if err := openFile(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	if err := refused(t, path, "cannot be written"); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("of what is read-only it is no error: %v", err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := openFile(t, path).Close(); err != nil {
		t.Errorf("the cause is gone, and yet: %v", err)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(dir, 0o755) }()
	refused(t, filepath.Join(dir, "b.db"), "must be able to create files")
}

// asNobody runs the test as a user who may not write to everything, as root may.
func asNobody(t *testing.T) {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "store.test")
	b, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(binary, b, 0o755)
	}
	if err == nil {
		err = os.Chown(dir, nobody, nobody)
	}
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(binary, "-test.run", "^"+t.Name()+"$")
	child.Dir = dir
	child.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}
