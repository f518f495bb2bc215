package spool

// Observer reads an exec's output while others do. Output that it has not read is
// kept from being dropped for as long as for an [Events] reader; then Next returns
// Missed.
type Observer struct{ Bytes }

// Observe returns a reader of the output. Reading begins at the oldest output that
// is kept, or after skip bytes of each stream if that is later. The caller ends it
// with Close. Errors: Storage.
func (e *Exec) Observe(skip [2]int64) (*Observer, error) {
	o := &Observer{Bytes{r: reader{e: e}}}
	if err := o.begin(skip); err != nil {
		return nil, err
	}
	return o, nil
}

// Close ends the reading. It may be called twice.
func (o *Observer) Close() { o.r.leave() }
