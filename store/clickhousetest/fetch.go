package clickhousetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The package that has the engine, and what its archive must hash to. It is the
// library of the chDB project: ClickHouse's own code, built to be loaded.
const (
	enginePackage   = "@chdb/lib-linux-x64-gnu"
	engineVersion   = "26.7.3-stable.1"
	engineIntegrity = "XP97mMqnc5tZpKQywR8N7cLTsHNiTmHr30pC5mzo3jWmukjKn2IBa60c2B/gWUNcuFjOMjWoorQICCqBVj5wpw=="
	libraryName     = "libchdb.so"
	engineFile      = "package/" + libraryName
)

// fetchTime bounds a download of 178 MB.
const fetchTime = 8 * time.Minute

// cached returns the path of something under a folder of .cache in the module. It is
// fetched once for all packages: fetch leaves it, by its name, in the folder that it is
// given.
func cached(folder, name string, fetch func(ctx context.Context, temp string) error) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, ".cache", folder)
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	// Tests of several packages run at once; one of them fetches.
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	temp, err := os.MkdirTemp(dir, "fetch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	if err := fetch(ctx, temp); err != nil {
		return "", err
	}
	return path, os.Rename(filepath.Join(temp, name), path)
}

// library returns the path of the engine's library.
func library() (string, error) {
	return cached(filepath.Join("clickhouse", engineVersion), libraryName, fetchLibrary)
}

// fetchLibrary lets npm bring the package's archive, checks it and takes the library
// out.
func fetchLibrary(ctx context.Context, temp string) error {
	if _, err := run(ctx, temp, "npm", "pack", "--silent", enginePackage+"@"+engineVersion); err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(temp, "*.tgz"))
	if err != nil || len(archives) != 1 {
		return fmt.Errorf("npm pack %s left %d archives", enginePackage, len(archives))
	}
	f, err := os.Open(archives[0])
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha512.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if got := base64.StdEncoding.EncodeToString(sum.Sum(nil)); got != engineIntegrity {
		return fmt.Errorf("the archive of %s@%s has SHA-512 %s, want %s", enginePackage, engineVersion, got, engineIntegrity)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := unpack(f, filepath.Join(temp, libraryName)); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archives[0]), err)
	}
	return nil
}

// unpack writes the library in a package's archive to a file.
func unpack(archive io.Reader, to string) error {
	z, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("there is no %s in it", engineFile)
		} else if err != nil {
			return err
		}
		if h.Name != engineFile {
			continue
		}
		f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, t)
		return errors.Join(err, f.Close())
	}
}

// unpackDebian lets apt-get bring packages of Debian, and unpacks them into the folder
// root without installing them.
func unpackDebian(ctx context.Context, temp string, packages []string) error {
	if _, err := run(ctx, temp, "apt-get", append([]string{"download"}, packages...)...); err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(temp, "*.deb"))
	if err != nil {
		return err
	}
	for _, archive := range archives {
		if _, err := run(ctx, temp, "dpkg-deb", "--extract", archive, filepath.Join(temp, "root")); err != nil {
			return err
		}
	}
	return nil
}

// run runs a program in a folder, and returns what it prints.
func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), "LC_ALL=C")
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, said.Bytes())
	}
	return out.String(), nil
}

// moduleRoot is the folder with go.mod, at or above the one that a test runs in.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("there is no go.mod at or above the folder of the test")
		}
		dir = parent
	}
}
