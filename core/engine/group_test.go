package engine

import (
	"testing"

	"sandbox/core"
)

func TestParseIO(t *testing.T) {
	t.Parallel()
	for stat, want := range map[string]core.DiskTraffic{
		"": {},
		"8:0 rbytes=4096 wbytes=512 rios=1 wios=1 dbytes=7 dios=1\n":                    {Read: 4096, Written: 512},
		"8:0 rbytes=1 wbytes=2\n7:3 rbytes=100 wbytes=200\n253:0 rbytes=10 wbytes=20\n": {Read: 11, Written: 22},
		"8:0\n8:16 rbytes wbytes= rios=x\nno stat at all":                               {},
	} {
		if got := parseIO(stat); *got != want {
			t.Errorf("%q is %+v, want %+v", stat, *got, want)
		}
	}
}
