package guest

import "golang.org/x/sys/unix"

// newID returns an exec id: "exec_" and 20 random characters of lower-case base32.
func newID() (string, error) {
	const alphabet = "abcdefghijklmnopqrstuvwxyz234567"
	var b [20]byte
	if _, err := unix.Getrandom(b[:], 0); err != nil {
		return "", err
	}
	for i := range b {
		b[i] = alphabet[b[i]&31]
	}
	return "exec_" + string(b[:]), nil
}
