package build

import "sandbox/api"

// pieces passes the output of a command on. No piece of a stream ends inside a
// character, so that text is text for whoever puts a piece into JSON.
type pieces struct {
	emit func(stderr bool, p []byte) error
	left [2][]byte // of each stream, the beginning of a character whose rest has not come
}

// add passes on what has come. p is not kept.
func (s *pieces) add(stderr bool, p []byte) error {
	left := &s.left[0]
	if stderr {
		left = &s.left[1]
	}
	if len(*left) > 0 {
		p = append(*left, p...)
	}
	cut := len(p) - api.Partial(p)
	*left = append([]byte(nil), p[cut:]...)
	if cut == 0 {
		return nil
	}
	return s.emit(stderr, p[:cut])
}

// flush passes on what both streams have left at their end: characters that never ended.
func (s *pieces) flush() error {
	for i, left := range s.left {
		if len(left) == 0 {
			continue
		}
		if err := s.emit(i == 1, left); err != nil {
			return err
		}
	}
	return nil
}
