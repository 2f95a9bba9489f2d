// Command bitmaps prints bitmaps of Service ranges as Go writes them: the bytes of a big.Int, in base64 as Kubernetes
// has them in JSON. The tests of the core read what it printed from tests/core/data/bitmaps.json. To print it anew:
//
//	cd testenv/samples/bitmaps && go run . > ../../../tests/core/data/bitmaps.json
package main

import (
	"encoding/json"
	"log"
	"math/big"
	"os"
)

// run is some offsets: first, first+step, and so on, below end.
type run struct {
	First int `json:"first"`
	End   int `json:"end"`
	Step  int `json:"step"`
}

type sample struct {
	What string `json:"what"`
	Size int    `json:"size"`
	Runs []run  `json:"runs"`
	Data []byte `json:"data"`
}

func main() {
	samples := []sample{
		{What: "a /24 with nothing in it", Size: 254, Runs: []run{}},
		{What: "a /30 that is full", Size: 2, Runs: []run{{0, 2, 1}}},
		{What: "a /28 with its last address", Size: 14, Runs: []run{{13, 14, 1}}},
		{What: "a /24 with the addresses of the API server and of DNS", Size: 254, Runs: []run{{0, 1, 1}, {9, 10, 1}}},
		{What: "a /24 that is full", Size: 254, Runs: []run{{0, 254, 1}}},
		{What: "an IPv6 /120 that is full", Size: 255, Runs: []run{{0, 255, 1}}},
		{What: "a /22, every third address", Size: 1022, Runs: []run{{0, 1022, 3}}},
		{What: "a /20, its band full and a few beyond", Size: 4094, Runs: []run{{0, 256, 1}, {1023, 1026, 1}, {3333, 3334, 1}}},
		{What: "a /20 with its first and last addresses free", Size: 4094, Runs: []run{{1, 4093, 1}}},
		{What: "a /12 with only DNS", Size: 1048574, Runs: []run{{9, 10, 1}}},
		{What: "an IPv6 /112, one address in a thousand", Size: 65535, Runs: []run{{534, 65535, 1000}}},
	}
	for at, each := range samples {
		bitmap := new(big.Int)
		for _, run := range each.Runs {
			for offset := run.First; offset < run.End; offset += run.Step {
				bitmap.SetBit(bitmap, offset, 1)
			}
		}
		samples[at].Data = bitmap.Bytes()
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(samples); err != nil {
		log.Fatal(err)
	}
}
