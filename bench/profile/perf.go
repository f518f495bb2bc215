package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// perf is a running `perf record`.
type perf struct {
	cmd             *exec.Cmd
	orders, answers *os.File
}

// startPerf starts to sample the host, and returns when that has begun.
func startPerf(ctx context.Context, data string) (p perf, err error) {
	taken, orders, err := os.Pipe()
	if err != nil {
		return perf{}, err
	}
	defer taken.Close()
	answers, given, err := os.Pipe()
	if err != nil {
		return perf{}, errors.Join(err, orders.Close())
	}
	defer given.Close()
	p = perf{orders: orders, answers: answers}
	p.cmd = exec.CommandContext(ctx, "perf", "record", "--quiet", "--all-cpus", "--call-graph", "fp", "--freq", "4000", "--delay", "-1", "--control", "fd:3,4", "--output", data)
	p.cmd.ExtraFiles, p.cmd.Stderr = []*os.File{taken, given}, os.Stderr
	if err := p.cmd.Start(); err != nil {
		return p, errors.Join(fmt.Errorf("start perf (make bench-peers installs it): %w", err), orders.Close(), answers.Close())
	}
	return p, p.order("enable")
}

// order gives an order and waits until it was carried out.
func (p perf) order(what string) error {
	if _, err := p.orders.WriteString(what + "\n"); err != nil {
		return err
	}
	_, err := bufio.NewReader(p.answers).ReadString('\n')
	return err
}

// stop ends perf, and with it its file.
func (p perf) stop() error {
	err := errors.Join(p.order("stop"), p.cmd.Wait())
	return errors.Join(err, p.orders.Close(), p.answers.Close())
}

// sample is a call stack: what was called last comes first, and the program's name
// is last.
type sample []string

// read returns the samples of the shim and of all that it started.
func read(ctx context.Context, data string, shim int, tools string) (all []sample, err error) {
	names, err := symbolsOf(filepath.Join(tools, "sandbox-shim"), filepath.Join(tools, "sandbox-init"))
	if err != nil {
		return nil, err
	}
	r, err := newReader(shim, names)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "perf", "script", "--show-task-events", "--fields", "comm,pid,ip,sym,dso", "--input", data)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	err = r.read(out)
	return r.all, errors.Join(err, cmd.Wait())
}

// reader collects the samples of a family of processes.
type reader struct {
	ours    map[int]bool
	names   map[string]symbols
	all     []sample
	current sample // of program
	program string // "" while a sample is none of ours

	fork, head, frame *regexp.Regexp // lines of `perf script`: of a process that forks, of a sample, of a frame of it
}

func newReader(shim int, names map[string]symbols) (*reader, error) {
	fork, err1 := regexp.Compile(`PERF_RECORD_FORK\((\d+):\d+\):\((\d+):\d+\)`)
	head, err2 := regexp.Compile(`^(\S.*?)\s+(\d+)\s*$`)
	frame, err3 := regexp.Compile(`^\s+([0-9a-f]+) (.*?) \(([/[].*)\)\s*$`)
	r := &reader{ours: map[int]bool{shim: true}, names: names, fork: fork, head: head, frame: frame}
	return r, errors.Join(err1, err2, err3)
}

func (r *reader) read(from io.Reader) error {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		r.line(lines.Text())
	}
	r.end()
	return lines.Err()
}

func (r *reader) line(line string) {
	if m := r.fork.FindStringSubmatch(line); m != nil {
		child, _ := strconv.Atoi(m[1]) // digits
		parent, _ := strconv.Atoi(m[2])
		r.ours[child] = r.ours[child] || r.ours[parent]
		return
	}
	if m := r.frame.FindStringSubmatch(line); m != nil {
		if r.program != "" {
			r.current = append(r.current, r.name(m[1], m[2], m[3]))
		}
		return
	}
	r.end()
	if m := r.head.FindStringSubmatch(line); m != nil {
		if pid, _ := strconv.Atoi(m[2]); r.ours[pid] {
			r.program = m[1]
		}
	}
}

func (r *reader) end() {
	if len(r.current) > 0 {
		r.all = append(r.all, append(r.current, stage(r.program)))
	}
	r.program, r.current = "", nil
}

// stage says what a process is doing, by its name.
func stage(program string) string {
	switch {
	case strings.HasPrefix(program, "memfd:"):
		return "the shim"
	case program == "exe":
		return "libcontainer, before its namespaces (" + program + ")"
	case program == "3":
		return "the box's init"
	}
	return program
}

// name returns the name of the function of a frame. perf has no symbols of programs
// that run from memory, and gives the place in their file.
func (r *reader) name(address, symbol, file string) string {
	if symbol != "[unknown]" {
		return symbol
	}
	at, err := strconv.ParseUint(address, 16, 64)
	for program, s := range r.names {
		if err == nil && strings.Contains(file, "memfd:"+program) {
			return s.at(at)
		}
	}
	return filepath.Base(file)
}
