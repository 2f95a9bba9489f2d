// Command bitmap measures the bitmap that the API server gave Service addresses with: one range, from empty to full.
//
// It prints one JSON object. bench/services_bitmap.py says which range, and does the same with ours.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"os"
	"runtime"
	"time"

	"k8s.io/kubernetes/pkg/registry/core/service/allocator"
)

var (
	size  = flag.Int("size", 65534, "how many addresses the range has")
	band  = flag.Int("band", 256, "how many of them are the static band")
	early = flag.Int("early", 6553, "how many allocations, the first, count as those of an empty range")
	late  = flag.Int("late", 65, "how many allocations, the last, count as those of a range that is nearly full")
)

func main() {
	flag.Parse()
	bitmap := allocator.NewAllocationMapWithOffset(*size, "10.96.0.0/16", *band)
	empty := allocate(bitmap, *early)
	allocate(bitmap, *size-*early-*late)
	full := allocate(bitmap, *late)
	if bitmap.Free() != 0 {
		log.Fatal("not full")
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{"empty": empty, "full": full, "go": runtime.Version()}))
}

// allocate returns the nanoseconds of one allocation, the mean of so many.
func allocate(bitmap *allocator.AllocationBitmap, number int) float64 {
	began := time.Now()
	for range number {
		_, found, err := bitmap.AllocateNext()
		check(err)
		if !found {
			log.Fatal("full too early")
		}
	}
	return float64(time.Since(began).Nanoseconds()) / float64(number)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
