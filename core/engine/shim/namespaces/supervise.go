package namespaces

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// awaitServing waits until the program writes a number: pasta that of its process, with a
// line feed, and slirp4netns a 1.
func awaitServing(ready *os.File) error {
	if err := ready.SetReadDeadline(time.Now().Add(answerTimeout - 5*time.Second)); err != nil {
		return err
	}
	line, err := bufio.NewReader(ready).ReadString('\n')
	if errors.Is(err, io.EOF) {
		if line == "" {
			return errors.New("it has ended")
		}
		err = nil
	}
	if _, bad := strconv.Atoi(strings.TrimSpace(line)); err == nil && bad != nil {
		err = fmt.Errorf("it said %q", line)
	}
	return err
}

// supervise starts the program again, a moment after it has ended, until the uplink is closed.
func (u *uplink) supervise(ended <-chan struct{}) {
	<-ended
	u.forget()
	again := time.NewTicker(restartPause)
	defer again.Stop()
	for {
		select {
		case <-u.closing:
			return
		case <-again.C:
		}
		u.log.Error("what connects the boxes to the network has ended and is started again")
		_, err := u.connect()
		if err == nil {
			return
		}
		u.log.Error("connect the boxes to the network", "error", err)
	}
}

// forget notes that the program does not run.
func (u *uplink) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.program = nil
}

// close ends the program. One that is being started meanwhile ends with this process.
func (u *uplink) close() {
	close(u.closing)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.program == nil {
		return
	}
	_ = u.program.Process.Kill()
	<-u.ended
}

// limited is a writer that keeps the beginning of what is written.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	_, _ = l.w.Write(p[:n])
	return len(p), nil
}
