package link

// ring holds the bytes of a stream from the offset base to the offset end. One
// goroutine adds bytes: it may fill what room returned while another one reads others.
type ring struct {
	buf       []byte // its length is a power of two, so that an offset says where its byte is
	base, end int64
}

// smallest is the length in bytes of a ring that has just begun.
const smallest = 4 << 10

func (r *ring) held() int { return int(r.end - r.base) }

// room returns free space for the bytes from end on. It is not empty, and as long as
// want if the free space does not begin anew before that.
func (r *ring) room(want int) []byte {
	for size := max(len(r.buf), smallest); ; size *= 2 {
		if size-r.held() >= want {
			r.resize(size)
			break
		}
	}
	at := int(r.end) & (len(r.buf) - 1)
	free := min(want, len(r.buf)-at)
	return r.buf[at : at+free]
}

func (r *ring) resize(size int) {
	if size == len(r.buf) {
		return
	}
	old := *r
	r.buf, r.end = make([]byte, size), old.base
	for r.end < old.end {
		at := int(r.end) & (size - 1)
		r.end += int64(copy(r.buf[at:], old.at(r.end, old.held())))
	}
}

// add appends p.
func (r *ring) add(p []byte) {
	for len(p) > 0 {
		n := copy(r.room(len(p)), p)
		r.end, p = r.end+int64(n), p[n:]
	}
}

// at returns bytes that are held from the offset on: at most n, and at least one if
// there are any.
func (r *ring) at(offset int64, n int) []byte {
	n = int(min(int64(n), r.end-offset))
	if n <= 0 {
		return nil
	}
	at := int(offset) & (len(r.buf) - 1)
	return r.buf[at:min(at+n, len(r.buf))]
}

// drop forgets the bytes before the offset.
func (r *ring) drop(offset int64) { r.base = max(r.base, min(offset, r.end)) }
