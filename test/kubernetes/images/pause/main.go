// Command pause holds the namespaces of a pod, as its process 1 where the pod's
// containers share them: it reaps what they leave behind, and ends when told to.
package main

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGCHLD)
	for s := range signals {
		if s != unix.SIGCHLD {
			return
		}
		for reaped := 1; reaped > 0; {
			reaped, _ = unix.Wait4(-1, nil, unix.WNOHANG, nil)
		}
	}
}
