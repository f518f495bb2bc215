package link

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
)

// keyWord begins the line by which a box end tells its public key.
const keyWord = "public key "

// WriteKey tells the public key of a box end that has made its key pair itself, as a line
// of w: of the log of its container, which the box can't write to.
func WriteKey(w io.Writer, key *ecdsa.PublicKey) error {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, keyWord+base64.StdEncoding.EncodeToString(der))
	return err
}

// ReadKey returns the first public key that r tells, which is that of the box end: it
// writes before anything of the box runs.
func ReadKey(r io.Reader) (*ecdsa.PublicKey, error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), keyWord)
		if !ok {
			continue // what the image's environment has the program say
		}
		der, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, err
		}
		parsed, err := x509.ParsePKIXPublicKey(der)
		if err != nil {
			return nil, err
		}
		key, ok := parsed.(*ecdsa.PublicKey)
		if !ok {
			return nil, fmt.Errorf("the key is of type %T", parsed)
		}
		return key, nil
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return nil, errors.New("no public key was told")
}
