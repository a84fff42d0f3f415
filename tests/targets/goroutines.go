// Goroutines that wait, move between threads, and whose stacks grow. It prints how often its functions
// were called.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

const deep = 40

//go:noinline
func leaf(n int) int {
	return n*7 + 3
}

// Each of its frames has a half of a kilobyte, so a new goroutine's stack is too small.
//
//go:noinline
func descend(n int) int {
	var room [64]int
	room[n%64] = n
	if n == 0 {
		return room[0]
	}
	return descend(n-1) + room[n%64]
}

//go:noinline
func handle(n int) int {
	time.Sleep(2 * time.Millisecond)
	sum := leaf(n)
	runtime.Gosched()
	return sum + descend(deep)
}

//go:noinline
func fails(n int) int {
	if n%3 == 0 {
		panic("an odd one")
	}
	return n
}

//go:noinline
func tries(n int) (sum int) {
	defer func() {
		if recover() != nil {
			sum = 1
		}
	}()
	return fails(n)
}

func worker(rounds int, done *sync.WaitGroup) {
	for n := 0; n < rounds; n++ {
		handle(n)
		tries(n)
	}
	done.Done()
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	runtime.GOMAXPROCS(4)
	const workers = 30
	var done sync.WaitGroup
	done.Add(workers)
	for n := 0; n < workers; n++ {
		go worker(rounds, &done)
	}
	done.Wait()
	calls := workers * rounds
	fmt.Println("calls", "main.handle", calls)
	fmt.Println("calls", "main.leaf", calls)
	fmt.Println("calls", "main.descend", calls*(deep+1))
	fmt.Println("calls", "main.tries", calls)
	fmt.Println("calls", "main.fails", calls)
}
