package keys_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/targetside/auditor/keys"
)

// Three tries of one question carry one key, and the target proves who asked.
func Example() {
	secret := []byte(strings.Repeat("keep me!", 4))
	ring, err := keys.NewRing(keys.Config{Originators: []keys.Originator{
		{ID: "web", Deadline: 20 * time.Second, Keys: []keys.Key{{KID: "a", Secret: secret}}}}})
	if err != nil {
		panic(err)
	}
	checker := ring.NewChecker()
	tries := make(map[string]int)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		values := [][]byte{[]byte(r.Header.Get(keys.Header))} // as ring.Fields: question_key
		a := checker.Attribute(values, false, time.Now().UnixNano(), 0)
		tries[string(a.Key)]++
		fmt.Println(a.Class, a.Originator, tries[string(a.Key)])
	}))
	defer target.Close()

	minter := &keys.Minter{Originator: "web", KID: "a", Secret: secret}
	client := &http.Client{Transport: &keys.Transport{}}
	question, err := minter.NewQuestion(context.Background())
	if err != nil {
		panic(err)
	}
	for range 3 {
		req, _ := http.NewRequestWithContext(question, "GET", target.URL, nil)
		if resp, err := client.Do(req); err == nil {
			resp.Body.Close()
		}
	}
	// Output:
	// verified web 1
	// verified web 2
	// verified web 3
}
