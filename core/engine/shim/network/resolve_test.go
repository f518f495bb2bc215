package network

import (
	"net/netip"
	"testing"
)

func TestParseResolvers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		v6   bool
		want string
	}{
		"usual":         {"# by hand\nnameserver 192.0.2.1\nnameserver 192.0.2.2 \nsearch a.example  b.example\noptions ndots:2\n", false, "nameserver 192.0.2.1\nnameserver 192.0.2.2\nsearch a.example b.example\noptions ndots:2\n"},
		"systemd's":     {"nameserver 127.0.0.53\noptions edns0\n", false, ""},
		"loopback, too": {"nameserver ::1\nnameserver 192.0.2.1", true, "nameserver 192.0.2.1\n"},
		"IPv6":          {"nameserver 2001:db8::1\nnameserver fe80::1%eth0\n", true, "nameserver 2001:db8::1\n"},
		"IPv6 without":  {"nameserver 2001:db8::1\n", false, ""},
		"nonsense":      {"nameserver\nnameserver x\nsortlist 1\n", true, ""},
	} {
		if got := parseResolvers([]byte(tt.text), tt.v6).text(); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func FuzzResolvers(f *testing.F) {
	f.Add([]byte("nameserver 192.0.2.1\nsearch a\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		once := parseResolvers(text, true).text()
		if again := parseResolvers([]byte(once), true).text(); again != once {
			t.Errorf("%q becomes %q", once, again)
		}
	})
}

func TestFreePool(t *testing.T) {
	t.Parallel()
	taken := []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("10.201.3.0/24"), netip.MustParsePrefix("10.202.0.0/15"), netip.MustParsePrefix("192.168.0.0/16"),
	}
	if got, err := freePool(taken); err != nil || got != netip.MustParsePrefix("10.204.0.0/16") {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := freePool([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}); err == nil {
		t.Errorf("got %v where nothing is free", got)
	}
}

func TestAddressOf(t *testing.T) {
	t.Parallel()
	s := shared{Pool: netip.MustParsePrefix("10.201.0.0/16")}
	for link, want := range map[string]string{"sbx0": "10.201.1.0", "sbx4095": "10.201.16.255", "sbx4096": "", "sbx-1": "", "eth0": "", "": ""} {
		got, err := s.addressOf(link)
		if (err == nil) != (want != "") || err == nil && (got.String() != want || s.linkOf(got.AsSlice()) != link) {
			t.Errorf("%s: %v, %v, want %s", link, got, err, want)
		}
	}
}
