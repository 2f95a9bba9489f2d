//go:build tools

// Package peer pins kube-controller-manager, whose RangeAllocator is what most clusters give Pod ranges with today.
//
// Nothing here is compiled. The import makes `go mod tidy` keep the modules that the program is built from.
package peer

import _ "k8s.io/kubernetes/cmd/kube-controller-manager"
