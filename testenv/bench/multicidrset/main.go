// Command multicidrset measures the allocator of node-ipam-controller, one work for each run.
//
// Or rather, of what that descends from: sigs.k8s.io/node-ipam-controller cannot be had from the module registry that
// this was written with, so it is multicidrset of Kubernetes 1.28, the last release that had it. See ../../README.md.
//
// The package gives candidates; that a candidate overlaps nothing is for the controller to see to. search does what the
// controller does for each node: take the next candidate, look for the very same block in all sets, then read every
// block that any set holds and see whether it overlaps, and only then occupy the candidate.
//
// It prints one JSON object. bench/peers.py says which work, and does the same with ours.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"log"
	"net"
	"os"
	"runtime"
	"time"

	"k8s.io/kubernetes/pkg/controller/nodeipam/ipam/multicidrset"
	netutils "k8s.io/utils/net"
)

var (
	cidr   = flag.String("range", "10.0.0.0/8", "the range to allocate from")
	length = flag.Int("length", 24, "the length of a block")
	other  = flag.Int("other", 23, "the length of a block of a second set over the same range, which holds nothing")
	held   = flag.Int("held", 1000, "how many blocks are held when one more is allocated")
	rounds = flag.Int("rounds", 100, "how many times to allocate one and release it")
)

func main() {
	flag.Parse()
	set := newSet(*length)
	sets := []*multicidrset.MultiCIDRSet{set, newSet(*other)}
	for range *held {
		candidate, _, err := set.NextCandidate()
		check(err)
		check(set.Occupy(candidate))
	}
	var measured []float64
	for range *rounds {
		began := time.Now()
		block, err := search(set, sets)
		measured = append(measured, float64(time.Since(began).Nanoseconds()))
		check(err)
		check(set.Release(block))
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{"nanoseconds": measured, "go": runtime.Version()}))
}

// search allocates a block of one set that overlaps nothing that any of the sets hold.
func search(set *multicidrset.MultiCIDRSet, all []*multicidrset.MultiCIDRSet) (*net.IPNet, error) {
	for tried := 0; tried < set.MaxCIDRs; tried++ {
		candidate, passed, err := set.NextCandidate()
		if err != nil {
			return nil, err
		}
		tried += passed
		if holdsSame(all, candidate) || holdsOverlapping(all, candidate) {
			continue
		}
		set.UpdateEvaluatedCount(tried)
		return candidate, set.Occupy(candidate)
	}
	return nil, errors.New("the range is full")
}

func holdsSame(all []*multicidrset.MultiCIDRSet, block *net.IPNet) bool {
	for _, set := range all {
		if set.AllocatedCIDRMap[block.String()] {
			return true
		}
	}
	return false
}

func holdsOverlapping(all []*multicidrset.MultiCIDRSet, block *net.IPNet) bool {
	for _, set := range all {
		for text := range set.AllocatedCIDRMap {
			_, held, err := netutils.ParseCIDRSloppy(text)
			check(err)
			if touches(block, held) || touches(held, block) {
				return true
			}
		}
	}
	return false
}

// touches says whether a block has the beginning of another in it; like the controller, it cuts that to the mask first.
func touches(block, other *net.IPNet) bool {
	return block.Contains(other.IP.Mask(block.Mask))
}

func newSet(length int) *multicidrset.MultiCIDRSet {
	_, block, err := net.ParseCIDR(*cidr)
	check(err)
	_, bits := block.Mask.Size()
	set, err := multicidrset.NewMultiCIDRSet(block, bits-length)
	check(err)
	return set
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
