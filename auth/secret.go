package auth

import (
	"crypto/rand"
	"hash/crc32"
	"strings"
)

// A secret is secretPrefix, 43 random characters and a checksum of these. With an
// alphabet of 62 the 43 characters carry 256 bits.
const (
	secretPrefix = "sbx_live_"
	opaqueLen    = 43
	sumLen       = 6
	secretLen    = len(secretPrefix) + opaqueLen + sumLen
	alphabet     = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// newSecret returns a random secret.
func newSecret() string {
	opaque := make([]byte, 0, opaqueLen)
	var random [64]byte
	for len(opaque) < opaqueLen {
		_, _ = rand.Read(random[:]) // never fails
		for _, b := range random {
			// 248 is the largest multiple of 62 that a byte can hold. A byte
			// above it would make the first characters more likely than
			// the others.
			if b < 248 && len(opaque) < opaqueLen {
				opaque = append(opaque, alphabet[b%62])
			}
		}
	}
	sum := checksum(string(opaque))
	return secretPrefix + string(opaque) + string(sum[:])
}

// checksum returns the CRC-32 (IEEE) in base62, padded with 0 on the left.
func checksum(opaque string) (sum [sumLen]byte) {
	var buf [opaqueLen]byte
	crc := crc32.ChecksumIEEE(buf[:copy(buf[:], opaque)])
	for i := range sum {
		sum[sumLen-1-i] = alphabet[crc%62]
		crc /= 62
	}
	return sum
}

// wellFormed reports whether a secret can be one of ours. It is false for a
// mistyped key and for a key of another service, which need no look-up then.
func wellFormed(secret string) bool {
	if len(secret) != secretLen || !strings.HasPrefix(secret, secretPrefix) {
		return false
	}
	opaque := secret[len(secretPrefix) : len(secretPrefix)+opaqueLen]
	sum := checksum(opaque)
	return secret[len(secretPrefix)+opaqueLen:] == string(sum[:]) && strings.Trim(opaque, alphabet) == ""
}

// mask replaces a secret by its prefix, stars and its last three characters.
func mask(secret string) string {
	return secretPrefix + strings.Repeat("*", 12) + secret[len(secret)-3:]
}
