package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of fields in pprof's profile.proto.
const (
	profileType     = 1
	profileSample   = 2
	profileLocation = 4
	profileFunction = 5
	profileString   = 6

	first, second = 1, 2 // a type's words, a sample's locations and values, an id and a name
	locationLine  = 4
)

// encoder writes a profile.
type encoder struct {
	out  []byte
	ids  map[string]uint64 // of functions, from 1; the same as of their locations
	next uint64            // string
}

// write writes samples to a file in the format of pprof.
func write(path string, samples []sample) error {
	e := encoder{ids: map[string]uint64{}}
	e.text("")
	e.message(profileType, number(number(nil, first, e.text("samples")), second, e.text("count")))
	for _, s := range samples {
		var body []byte
		for _, name := range s {
			body = number(body, first, e.function(name))
		}
		e.message(profileSample, number(body, second, 1))
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	packed := gzip.NewWriter(file)
	_, err = packed.Write(e.out)
	return errors.Join(err, packed.Close(), file.Close())
}

// number appends a field with a number to a message.
func number(to []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(to, field, protowire.VarintType), n)
}

func (e *encoder) message(field protowire.Number, body []byte) {
	e.out = protowire.AppendBytes(protowire.AppendTag(e.out, field, protowire.BytesType), body)
}

// text adds a string and returns its number.
func (e *encoder) text(s string) uint64 {
	e.message(profileString, []byte(s))
	e.next++
	return e.next - 1
}

// function returns the id of a function, and of its only location.
func (e *encoder) function(name string) uint64 {
	if id := e.ids[name]; id != 0 {
		return id
	}
	id := uint64(len(e.ids) + 1)
	e.ids[name] = id
	e.message(profileFunction, number(number(nil, first, id), second, e.text(name)))
	line := number(nil, first, id)
	location := protowire.AppendTag(number(nil, first, id), locationLine, protowire.BytesType)
	e.message(profileLocation, protowire.AppendBytes(location, line))
	return id
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
