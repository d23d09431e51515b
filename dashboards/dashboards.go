// Package dashboards holds what people look at: the live page, for the daemon to
// serve at /.
//
// The page is built from web/ by make and embedded as it then is. A program that was
// built without it says so at / and does all else.
package dashboards

import (
	"embed"
	"io/fs"
)

// The folder of the built page holds a file of its own, so that there is always one
// to embed.
//
//go:embed all:web/dist web/unbuilt
var files embed.FS

// Page is the live page: index.html and what it loads. Built says whether this is the
// page itself, or only the words that it was not built.
func Page() (page fs.FS, built bool) { return pick(files) }

func pick(files fs.FS) (page fs.FS, built bool) {
	dir := "web/dist"
	if _, err := fs.Stat(files, dir+"/index.html"); err != nil {
		dir = "web/unbuilt"
	}
	page, err := fs.Sub(files, dir)
	if err != nil {
		panic(err) // a path that is not valid
	}
	return page, dir == "web/dist"
}
