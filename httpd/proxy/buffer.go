package proxy

import "sync"

// piece is how many bytes are passed on at once: more cost memory for each answer that
// flows, and make it hardly faster.
const piece = 64 << 10

// buffers holds the buffers that are not in use.
var buffers = &pool{sync.Pool{New: func() any { return new([piece]byte) }}}

type pool struct{ sync.Pool }

// Get returns a buffer of piece bytes.
func (p *pool) Get() []byte { return p.Pool.Get().(*[piece]byte)[:] } //nolint:forcetypeassert // nothing else is put

// Put takes a buffer back.
func (p *pool) Put(b []byte) { p.Pool.Put((*[piece]byte)(b)) }
