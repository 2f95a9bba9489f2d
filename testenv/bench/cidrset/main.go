// Command cidrset measures the allocator of kube-controller-manager's RangeAllocator, one work for each run.
//
// It prints one JSON object. bench/peers.py says which work, and does the same with ours.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"time"

	"k8s.io/kubernetes/pkg/controller/nodeipam/ipam/cidrset"
)

var (
	cidr   = flag.String("range", "10.0.0.0/8", "the range to allocate from")
	length = flag.Int("length", 24, "the length of a block")
	count  = flag.Int("count", 65536, "in order: how many blocks to allocate, out of an empty range")
	free   = flag.Int("free", -1, "nearly full: how many blocks are free; less than 0 for work in order")
	step   = flag.Int("step", 64, "nearly full: how many random blocks to release, and then to allocate, in a round")
	rounds = flag.Int("rounds", 100, "nearly full: how many rounds")
	seed   = flag.Uint64("seed", 1, "nearly full: where the random numbers begin")
)

func main() {
	flag.Parse()
	_, cluster, err := net.ParseCIDR(*cidr)
	check(err)
	set, err := cidrset.NewCIDRSet(cluster, *length)
	check(err)
	work := inOrder
	if *free >= 0 {
		work = nearlyFull
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{"nanoseconds": work(set), "go": runtime.Version()}))
}

// inOrder returns the nanoseconds of one allocation, out of a range that is empty at first.
func inOrder(set *cidrset.CidrSet) []float64 {
	began := time.Now()
	for range *count {
		_, err := set.AllocateNext()
		check(err)
	}
	return []float64{each(began, *count)}
}

// nearlyFull returns the nanoseconds of one allocation for each round.
func nearlyFull(set *cidrset.CidrSet) []float64 {
	draw := rand.New(rand.NewPCG(*seed, 0))
	var held []*net.IPNet
	for block, err := set.AllocateNext(); err == nil; block, err = set.AllocateNext() {
		held = append(held, block)
	}
	release := func(number int) {
		for range number {
			at, last := draw.IntN(len(held)), len(held)-1
			check(set.Release(held[at]))
			held[at], held = held[last], held[:last]
		}
	}
	release(*free)
	var measured []float64
	for range *rounds {
		release(*step)
		began := time.Now()
		for range *step {
			block, err := set.AllocateNext()
			check(err)
			held = append(held, block)
		}
		measured = append(measured, each(began, *step))
	}
	return measured
}

func each(began time.Time, number int) float64 {
	return float64(time.Since(began).Nanoseconds()) / float64(number)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
