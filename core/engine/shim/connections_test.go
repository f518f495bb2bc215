package shim

import (
	"strings"
	"testing"
)

// TestReached looks at tables as the kernel writes them.
func TestReached(t *testing.T) {
	t.Parallel()
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	line := func(local, remote, state, uid string) string {
		return "   0: " + local + " " + remote + " " + state + " 00000000:00000000 00:00000000 00000000 " + uid + "        0 1 1 0 100 0 0 10 0\n"
	}
	const ours, box = "0", "1879048192" // a user of the host, and the box's root
	listens := line("00000000:1F90", "00000000:0000", listening, box)
	for name, tt := range map[string]struct {
		table string
		want  bool
	}{
		"nothing":                          {"", false},
		"who listens":                      {listens, false},
		"from outside":                     {listens + line("0200000A:1F90", "0100000A:C000", established, box), true},
		"the port is named later":          {line("0200000A:1F90", "0100000A:C000", established, box) + listens, true},
		"half closed":                      {listens + line("0200000A:1F90", "0100000A:C000", closeWait, box), true},
		"over":                             {listens + line("0200000A:1F90", "0100000A:C000", "06", box), false},
		"the box to another":               {listens + line("0200000A:C000", "08080808:0050", established, box), false},
		"the box to itself":                {listens + line("0100007F:1F90", "0100007F:C000", established, box) + line("0100007F:C000", "0100007F:1F90", established, box), false},
		"the host, from inside of the box": {listens + line("0100007F:C000", "0100007F:1F90", established, ours), true},
		"what can't be read":               {"x\n\n" + line("a", "b", established, "c"), false},
	} {
		if got, err := reached(strings.NewReader(head+tt.table), 0x70000000); err != nil || got != tt.want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, tt.want)
		}
	}
}

// TestPassiveOpens reads the count of accepted connections.
func TestPassiveOpens(t *testing.T) {
	t.Parallel()
	const text = "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm ActiveOpens PassiveOpens\nTcp: 1 7 42\nUdp: InDatagrams\nUdp: 3\n"
	if n, err := passiveOpens(strings.NewReader(text)); n != 42 || err != nil {
		t.Errorf("got %d, %v, want 42", n, err)
	}
	for _, text := range []string{"", "Tcp: PassiveOpens\n", "Tcp: PassiveOpens\nTcp: x\n", "Tcp: PassiveOpens\nTcp:\n"} {
		if _, err := passiveOpens(strings.NewReader(text)); err == nil {
			t.Errorf("%q has a count", text)
		}
	}
}
