package auth

import (
	"crypto/rand"
	"hash/crc32"
	"strings"
)

// A secret is prefix, 43 random characters and a check sum of them. 43
// characters of 62 are 256 bits.
const (
	secretPrefix = "sbx_live_"
	opaqueLen    = 43
	sumLen       = 6
	secretLen    = len(secretPrefix) + opaqueLen + sumLen
	alphabet     = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// newSecret returns a secret nobody can guess.
func newSecret() string {
	opaque := make([]byte, 0, opaqueLen)
	var random [64]byte
	for len(opaque) < opaqueLen {
		_, _ = rand.Read(random[:]) // never fails
		for _, b := range random {
			// The largest multiple of 62 in a byte: beyond it the first
			// characters would be likelier than the others.
			if b < 248 && len(opaque) < opaqueLen {
				opaque = append(opaque, alphabet[b%62])
			}
		}
	}
	sum := checksum(string(opaque))
	return secretPrefix + string(opaque) + string(sum[:])
}

// checksum is the CRC-32 (IEEE) in base62, padded with 0 on the left.
func checksum(opaque string) (sum [sumLen]byte) {
	var buf [opaqueLen]byte
	crc := crc32.ChecksumIEEE(buf[:copy(buf[:], opaque)])
	for i := range sum {
		sum[sumLen-1-i] = alphabet[crc%62]
		crc /= 62
	}
	return sum
}

// wellFormed tells a key that somebody mistyped, or that is another service's,
// without a look-up.
func wellFormed(secret string) bool {
	if len(secret) != secretLen || !strings.HasPrefix(secret, secretPrefix) {
		return false
	}
	opaque := secret[len(secretPrefix) : len(secretPrefix)+opaqueLen]
	sum := checksum(opaque)
	return secret[len(secretPrefix)+opaqueLen:] == string(sum[:]) && strings.Trim(opaque, alphabet) == ""
}

// mask hides all of a secret but what it is and its last three characters.
func mask(secret string) string {
	return secretPrefix + strings.Repeat("*", 12) + secret[len(secret)-3:]
}
