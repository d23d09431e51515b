//go:build !unix

package main

import "fmt"

func main() { fmt.Println("kafkatest: it stops what it started by Unix signals") }
