package options_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sandbox/core/fault"
	"sandbox/core/options"
)

func TestBoxCheck(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*options.Box)
		field  string // "" for none
	}{
		"fine":              {func(b *options.Box) { b.Name = "Web-1.a_b" }, ""},
		"one letter":        {func(b *options.Box) { b.Name = "7" }, ""},
		"longest name":      {func(b *options.Box) { b.Name = strings.Repeat("n", 128) }, ""},
		"name too long":     {func(b *options.Box) { b.Name = strings.Repeat("n", 129) }, "name"},
		"name begins wrong": {func(b *options.Box) { b.Name = "-web" }, "name"},
		"name with colon":   {func(b *options.Box) { b.Name = "web:stop" }, "name"},
		"name not ASCII":    {func(b *options.Box) { b.Name = "wéb" }, "name"},
		"name like a box":   {func(b *options.Box) { b.Name = "box_a" }, "name"},
		"name like an exec": {func(b *options.Box) { b.Name = "exec_a" }, "name"},
		"user":              {func(b *options.Box) { b.User = "a\x00b" }, "user"},
		"host name":         {func(b *options.Box) { b.Hostname = "Db-1.example.com" }, ""},
		"host name, long":   {func(b *options.Box) { b.Hostname = strings.Repeat("a.", 32) + "a" }, "hostname"},
		"host name, parts":  {func(b *options.Box) { b.Hostname = "a..b" }, "hostname"},
		"host name, hyphen": {func(b *options.Box) { b.Hostname = "a.-b" }, "hostname"},
		"host name, text":   {func(b *options.Box) { b.Hostname = "a b" }, "hostname"},
		"label":             {func(b *options.Box) { b.Labels = map[string]string{"k": "\x00"} }, "labels.k"},
		"label key":         {func(b *options.Box) { b.Labels = map[string]string{"": "v"} }, "labels"},
		"labels": {func(b *options.Box) {
			b.Labels = map[string]string{}
			for i := range 65 {
				b.Labels[fmt.Sprint(i)] = ""
			}
		}, "labels"},
		"image": {func(b *options.Box) { b.Image = "a\xff" }, "rootfs.Image"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := options.Defaults()
			b.Image = options.DefaultImage
			tt.change(&b)
			refused(t, b.Check(), tt.field)
		})
	}
}

func TestExecCheck(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		exec  options.Exec
		field string
	}{
		"fine":        {options.Exec{Cmd: []string{"sh", "-c", ""}, WorkingDir: "/", Cols: 80, Rows: 24, Timeout: time.Second}, ""},
		"no command":  {options.Exec{}, "cmd"},
		"empty name":  {options.Exec{Cmd: []string{""}}, "cmd"},
		"NUL":         {options.Exec{Cmd: []string{"a", "b\x00"}}, "cmd[1]"},
		"not UTF-8":   {options.Exec{Cmd: []string{"a", "\xff"}}, "cmd[1]"},
		"2 MB":        {options.Exec{Cmd: []string{"a", strings.Repeat("b", 2<<20)}}, "cmd"},
		"env":         {options.Exec{Cmd: []string{"a"}, Env: map[string]string{"A=": ""}}, "env"},
		"working_dir": {options.Exec{Cmd: []string{"a"}, WorkingDir: "tmp"}, "working_dir"},
		"user":        {options.Exec{Cmd: []string{"a"}, User: "\x00"}, "user"},
		"cols":        {options.Exec{Cmd: []string{"a"}, Cols: 1 << 16}, "cols"},
		"rows":        {options.Exec{Cmd: []string{"a"}, Rows: -1}, "rows"},
		"timeout":     {options.Exec{Cmd: []string{"a"}, Timeout: -1}, "timeout_ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, tt.exec.Check(), tt.field)
		})
	}
}

// refused checks that err is about field and no other field; with "", that err
// is nil.
func refused(t *testing.T, err error, field string) {
	t.Helper()
	if field == "" {
		if err != nil {
			t.Error(err)
		}
		return
	}
	f := fault.Of(err)
	if f == nil || f.Kind != fault.InvalidArgument || len(f.Fields) != 1 || f.Fields[0].Field != field {
		t.Errorf("got %+v, want one problem with %s", f, field)
	}
}
