// Command etcd is an etcd server of one member, for tests.
//
// The flags are some of etcd's own and mean the same, so that a released etcd can take its place. One thing differs: it
// listens for peers only when told to, because a member that is alone has none.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	config := embed.NewConfig()
	config.ListenPeerUrls = nil
	flag.StringVar(&config.Dir, "data-dir", "default.etcd", "directory of the data")
	flag.StringVar(&config.LogLevel, "log-level", config.LogLevel, "debug, info, warn or error")
	flag.BoolVar(&config.UnsafeNoFsync, "unsafe-no-fsync", false, "do not wait for the disk")
	urls(&config.ListenClientUrls, "listen-client-urls", "where to listen for clients")
	urls(&config.AdvertiseClientUrls, "advertise-client-urls", "where clients are told to connect")
	urls(&config.ListenPeerUrls, "listen-peer-urls", "where to listen for peers")
	asked := flag.Bool("version", false, "print the version")
	flag.Parse()
	if *asked {
		fmt.Println("etcd Version:", version.Version)
		return
	}
	if err := serve(config); err != nil {
		log.Fatal(err)
	}
}

// urls defines a flag for a list of URLs, separated by commas.
func urls(list *[]url.URL, name, usage string) {
	flag.Func(name, usage, func(text string) error {
		read, err := types.NewURLs(strings.Split(text, ","))
		*list = read
		return err
	})
}

// serve runs the server until SIGTERM or SIGINT, then closes it.
func serve(config *embed.Config) error {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT)
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer server.Close()
	select {
	case <-told:
		return nil
	case err := <-server.Err():
		return err
	case <-server.Server.StopNotify():
		return errors.New("etcd stopped by itself")
	}
}
