package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/google/pprof/profile"
	"golang.org/x/sys/unix"
)

// write writes samples to a file in the format of pprof.
func write(path string, samples []sample) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(profileOf(samples).Write(file), file.Close())
}

// profileOf returns samples as pprof has them. Each function has one location.
func profileOf(samples []sample) *profile.Profile {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}}}
	known := map[string]*profile.Location{}
	for _, s := range samples {
		stack := make([]*profile.Location, len(s))
		for i, name := range s {
			if known[name] == nil {
				known[name] = add(p, name)
			}
			stack[i] = known[name]
		}
		p.Sample = append(p.Sample, &profile.Sample{Location: stack, Value: []int64{1}})
	}
	return p
}

// add adds a function to a profile and returns its location.
func add(p *profile.Profile, name string) *profile.Location {
	f := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name}
	at := &profile.Location{ID: f.ID, Line: []profile.Line{{Function: f}}}
	p.Function, p.Location = append(p.Function, f), append(p.Location, at)
	return at
}

// draw has pprof draw the flame graph of a profile, and keeps the page.
func draw(ctx context.Context, profile, page string) error {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "tool", "pprof", "-http", address, "-no_browser", profile)
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { cancel(); _ = cmd.Wait() }() // it ends by being killed
	for {
		err := fetch(ctx, "http://"+address+"/ui/flamegraph", page)
		if !errors.Is(err, unix.ECONNREFUSED) {
			return err
		}
		time.Sleep(50 * time.Millisecond) // it does not tell when it serves
	}
}

func fetch(ctx context.Context, address, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	answer, err := new(http.Client).Do(req) // its deadline is that of ctx
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, answer.Status)
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, answer.Body)
	return errors.Join(err, out.Close())
}
