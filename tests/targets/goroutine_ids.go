// Goroutines that end inside calls, and later ones that get their descriptors. It prints the ids of all, as
// Go knows them, and how each ends.
package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
)

const atOnce = 8

// Returns the id by which Go knows the goroutine.
func id() int {
	var text [64]byte
	words := bytes.Fields(text[:runtime.Stack(text[:], false)])
	id, _ := strconv.Atoi(string(words[1]))
	return id
}

//go:noinline
func tell(id int) int {
	return id*7 + 3
}

// Ends its goroutine if the id is even.
//
//go:noinline
func leaves(id int) int {
	sum := tell(id)
	if id%2 == 0 {
		runtime.Goexit()
	}
	return sum
}

//go:noinline
func later(id int) int {
	return tell(id) + 1
}

// Calls from deeper on the stack than where others have ended.
//
//go:noinline
func descends(id int) int {
	var room [64]int
	room[id%64] = later(id)
	return room[id%64] + 1
}

func wave(name string, calls func(int) int) {
	var done sync.WaitGroup
	var printing sync.Mutex
	for n := 0; n < atOnce; n++ {
		done.Add(1)
		go func() {
			defer done.Done()
			id := id()
			printing.Lock()
			fmt.Println(name, id)
			printing.Unlock()
			calls(id)
		}()
	}
	done.Wait()
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	for n := 0; n < rounds; n++ {
		wave("leaves", leaves)
		wave("later", descends)
	}
}
