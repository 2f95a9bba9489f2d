//go:build tools

// Package testenv pins what the tests run on: see README.md.
//
// Nothing here is compiled. The imports make `go mod tidy` keep the modules that the programs are built from.
package testenv

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
