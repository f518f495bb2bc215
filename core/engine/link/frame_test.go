package link

import (
	"bytes"
	"testing"

	"sandbox/core/engine/wire"
)

// FuzzFrame parses any bytes as a header and as a record. What parses is written as the
// same bytes again.
func FuzzFrame(f *testing.F) {
	f.Add(header{kind: kindData, stream: 1, size: 5, offset: 7}.append(nil))
	f.Add(record{frame: wire.Frame{Type: 1, Body: []byte("{}")}, notes: []note{{toHost, 1, 2, 3}, {before, 2, 9, 0}}}.bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= headerSize {
			if h, err := parseHeader(b[:headerSize]); err == nil && !bytes.Equal(h.append(nil), b[:headerSize]) {
				t.Errorf("%+v is not %x", h, b[:headerSize])
			}
		}
		r := bytes.NewReader(b)
		rec, err := readRecord(r)
		if err == nil && !bytes.Equal(rec.bytes(), b[:len(b)-r.Len()]) {
			t.Errorf("%+v is not %x", rec, b)
		}
	})
}

func TestRing(t *testing.T) {
	t.Parallel()
	var r ring
	want := make([]byte, 0, 1<<20)
	for i := range 3000 {
		p := bytes.Repeat([]byte{byte(i)}, i%700)
		r.add(p)
		want = append(want, p...)
		if i%3 == 0 {
			r.drop(r.base + int64(i%1900))
		}
		var got []byte
		for at := r.base; at < r.end; {
			p := r.at(at, 1000)
			got, at = append(got, p...), at+int64(len(p))
		}
		if !bytes.Equal(got, want[r.base:r.end]) {
			t.Fatalf("after %d: %d bytes from %d to %d", i, len(got), r.base, r.end)
		}
	}
}
