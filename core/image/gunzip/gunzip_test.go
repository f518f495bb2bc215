package gunzip_test

import (
	"bytes"
	"compress/flate"
	stdgzip "compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"sandbox/core/image/gunzip"
)

func unpack(r io.Reader) ([]byte, error) {
	z, err := gunzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

func standard(data []byte) ([]byte, error) {
	z, err := stdgzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

func pack(t testing.TB, plain []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := stdgzip.NewWriterLevel(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	w.Name, w.Comment, w.Extra = "name", "comment", []byte("extra")
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// plains returns contents that make the compressor, and so the reader, use all
// of their features.
func plains() map[string][]byte {
	random := rand.NewChaCha8([32]byte{})
	noise := make([]byte, 1<<20)
	_, _ = random.Read(noise)
	letters := make([]byte, 1<<20)
	for i, c := range noise {
		letters[i] = "etaoinshrdlucmfwypvbgkqjxz ETAOIN"[min(int(c)/3, int(c&15), 32)]
	}
	skewed := make([]byte, 1<<20) // leads to codes of all lengths
	for i := range skewed {
		for skewed[i] < 250 && random.Uint64()&1 == 0 {
			skewed[i]++
		}
	}
	var far bytes.Buffer // leads to matches at each distance
	for i := 1; i < 32<<10; i = i*5/4 + 1 {
		far.Write(noise[:i])
		far.Write(noise[:min(i, 300)])
	}
	return map[string][]byte{
		"empty": nil, "one": {1}, "noise": noise, "letters": letters, "skewed": skewed, "far": far.Bytes(),
		"run": bytes.Repeat([]byte{7}, 1<<20), "period": bytes.Repeat([]byte("abcde"), 1<<18), "text": []byte(strings.Repeat("The quick brown fox. ", 50_000)),
	}
}

func TestUnpacks(t *testing.T) {
	t.Parallel()
	for name, plain := range plains() {
		for _, level := range []int{flate.NoCompression, flate.BestSpeed, flate.DefaultCompression, flate.BestCompression, flate.HuffmanOnly} {
			data := pack(t, plain, level)
			for reader, r := range map[string]io.Reader{
				"at once": bytes.NewReader(data), "byte by byte": iotest.OneByteReader(bytes.NewReader(data)), "with its end": iotest.DataErrReader(bytes.NewReader(data)),
			} {
				if got, err := unpack(r); err != nil || !bytes.Equal(got, plain) {
					t.Errorf("%s, level %d, %s: %d bytes, %v; want %d", name, level, reader, len(got), err, len(plain))
				}
			}
		}
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	data := append(pack(t, []byte("one "), 6), pack(t, []byte("two"), 6)...)
	if got, err := unpack(bytes.NewReader(data)); err != nil || string(got) != "one two" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := unpack(bytes.NewReader(append(data, "garbage garbage"...))); !errors.Is(err, gunzip.ErrHeader) {
		t.Errorf("%v, want a bad header", err)
	}
}

// TestCut cuts a stream at each byte and checks that it fails there.
func TestCut(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, level := range []int{flate.NoCompression, flate.BestSpeed, flate.HuffmanOnly} {
		data := pack(t, []byte(strings.Repeat("some text and more ", 20)), level)
		for n := range data {
			if _, err := unpack(bytes.NewReader(data[:n])); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("level %d, %d of %d bytes: %v, want an unexpected end", level, n, len(data), err)
			}
			if _, err := unpack(io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(broken))); !errors.Is(err, broken) {
				t.Errorf("level %d, %d of %d bytes: %v, want the source's failure", level, n, len(data), err)
			}
		}
	}
}

// TestChanged flips bits everywhere. The result must be that of the standard
// library, unless both agree that the stream is invalid.
func TestChanged(t *testing.T) {
	t.Parallel()
	for name, plain := range plains() {
		data := pack(t, plain[:min(len(plain), 200)], 6)
		for i := 0; i < len(data)*8; i += 3 {
			changed := bytes.Clone(data)
			changed[i/8] ^= 1 << (i % 8)
			same(t, name, changed)
		}
	}
}

// same fails the test unless the standard library and this package agree about
// data.
func same(t *testing.T, name string, data []byte) {
	t.Helper()
	want, wantErr := standard(data)
	got, err := unpack(bytes.NewReader(data))
	if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
		t.Fatalf("%s: %d bytes, %v; the standard library %d bytes, %v; of %x", name, len(got), err, len(want), wantErr, data)
	}
}

func FuzzReader(f *testing.F) {
	for _, plain := range plains() {
		for _, level := range []int{0, 1, 6, flate.HuffmanOnly} {
			f.Add(pack(f, plain[:min(len(plain), 2000)], level))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) { same(t, "fuzz", data) })
}

// BenchmarkReader unpacks the file that the variable LAYER names.
func BenchmarkReader(b *testing.B) {
	data, err := os.ReadFile(os.Getenv("LAYER"))
	if err != nil {
		b.Skip("set LAYER to a gzip file")
	}
	for b.Loop() {
		z, err := gunzip.NewReader(bytes.NewReader(data))
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, z, make([]byte, 256<<10))
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(n)
	}
}
