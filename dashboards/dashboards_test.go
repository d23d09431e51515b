package dashboards

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// A program that was built without the page says so, and one with it serves it.
func TestPageOrWords(t *testing.T) {
	unbuilt, err := fs.ReadFile(files, "web/unbuilt/index.html")
	if err != nil {
		t.Fatal(err)
	}
	words := fstest.MapFS{
		"web/unbuilt/index.html": {Data: unbuilt},
		"web/dist/README":        {Data: []byte("x")},
	}
	page, built := pick(words)
	text, err := fs.ReadFile(page, "index.html")
	if err != nil || built || !strings.Contains(string(text), "make build") || !strings.Contains(string(text), "api/v1/summary") {
		t.Errorf("built %v, %v: %s", built, err, text)
	}
	words["web/dist/index.html"] = &fstest.MapFile{Data: []byte("built")}
	page, built = pick(words)
	if text, err := fs.ReadFile(page, "index.html"); err != nil || !built || string(text) != "built" {
		t.Errorf("built %v, %v: %s", built, err, text)
	}
}

// The page is loaded in the middle of an incident: all of it weighs less than 150 KiB
// compressed. Nothing of it names another host, nor brings script or style of its own
// within HTML. The namespace of SVG is no host.
func TestPageIsLightAndAlone(t *testing.T) {
	page, built := Page()
	if !built {
		if os.Getenv("CI") != "" {
			t.Fatal("the page is not built: run make page")
		}
		t.Skip("the page is not built: make page does that, with npm")
	}
	const most = 150 << 10
	var packed bytes.Buffer
	err := fs.WalkDir(page, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(page, name)
		if err != nil {
			return err
		}
		z := gzip.NewWriter(&packed)
		z.Write(data)
		if err := z.Close(); err != nil {
			return err
		}
		if name == "index.html" {
			for _, no := range []string{"<style", "style=", "<script>", "onload"} {
				if bytes.Contains(data, []byte(no)) {
					t.Errorf("%s has %q", name, no)
				}
			}
		}
		alone := bytes.ReplaceAll(data, []byte(`xmlns="http://www.w3.org/2000/svg"`), nil)
		for _, no := range []string{"//", "@import", "innerHTML", "insertAdjacentHTML", "document.write", "eval("} {
			if bytes.Contains(alone, []byte(no)) {
				t.Errorf("%s has %q", name, no)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the page weighs %d bytes compressed", packed.Len())
	if packed.Len() > most {
		t.Errorf("the page weighs %d bytes compressed, more than %d", packed.Len(), most)
	}
}
