package harness

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

func report(ours, peer float64) Report {
	row := func(who string, p50 float64) Row {
		return Row{Measurement: "exec", Contestant: who, Unit: "ms", P50: p50, P99: 2 * p50, N: 30}
	}
	failed := row("runc", 1)
	failed.DidNotRun = "not installed"
	return Report{Rounds: 30, Rows: []Row{row("ours", ours), row("crun <1>", peer), failed}}
}

// A machine that is twice as slow changes no ratio; a change of ours does.
func TestCompare(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		new  Report
		want string
	}{
		"slow machine": {report(4, 8), "0.500 0.500 +0 %"},
		"ours faster":  {report(1, 4), "0.500 0.250 -50 %"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "report.json")
			if err := tc.new.Save(file); err != nil {
				t.Fatal(err)
			}
			loaded, err := Load(file)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			Compare(&out, report(2, 4), loaded)
			text := strings.Join(strings.Fields(out.String()), " ")
			if !strings.Contains(text, "exec ours crun <1> ms "+tc.want) || strings.Contains(text, "runc") {
				t.Errorf("printed %s, want %s and nothing of a peer that did not run", out.String(), tc.want)
			}
		})
	}
}

func TestDraw(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := report(2, 4).Draw(&out, []string{"exec", "unknown"}, map[string]string{"exec": "a & b"}); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(out.Bytes()))
	lengths := []string{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, out.String())
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "rect" {
			for _, a := range start.Attr {
				if a.Name.Local == "width" {
					lengths = append(lengths, a.Value)
				}
			}
		}
	}
	if strings.Join(lengths, " ") != "240 480" {
		t.Errorf("bars of %v, want 240 and 480", lengths)
	}
}
