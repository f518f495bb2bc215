package image

import "testing"

// A registry leads to this host's own addresses only if it is one of them itself.
func TestReach(t *testing.T) {
	t.Parallel()
	for address, of := range map[string]struct{ outside, local bool }{
		"127.0.0.1:80": {false, true}, "127.9.9.9:443": {false, true}, "[::1]:443": {false, true}, "[::ffff:127.0.0.1]:80": {false, true}, "0.0.0.0:80": {false, true},
		"169.254.169.254:80": {false, false}, "[fe80::1%eth0]:80": {false, false}, "[fd00:ec2::254]:80": {false, false}, "100.100.100.200:80": {false, false},
		"192.0.2.1:443": {true, true}, "10.0.0.1:443": {true, true}, "[2001:db8::1]:443": {true, true},
	} {
		if got := toward("registry.example.com").check(address) == nil; got != of.outside {
			t.Errorf("a registry outside leads to %s: %v", address, got)
		}
		if got := toward("localhost:5000").check(address) == nil; got != of.local {
			t.Errorf("one on loopback leads to %s: %v", address, got)
		}
	}
}
