package chdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
)

// again is how often a kill is repeated: a statement that was not yet known to
// the engine is not found, and nothing tells when it is.
const again = 20 * time.Millisecond

// killer waits for the end of a statement; when its client goes away before,
// it kills it until it has ended. KILL QUERY ... SYNC would hang for ever.
func (s *server) killer(ctx context.Context, id string, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	for {
		if err := s.rows(fmt.Sprintf("KILL QUERY WHERE Settings['log_comment'] = '%s'", quoted.Replace(id)), nil); err != nil {
			slog.Warn("kill a statement", "id", id, "err", err)
		}
		select {
		case <-ended:
			return
		case <-time.After(again):
		}
	}
}

var quoted = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// feed copies data into an insertion. Data that end early, because their
// client went away, must not be stored: the reader tells that from their end.
func feed(i insertion, data io.Reader) error {
	buffer := make([]byte, 256<<10)
	_, err := io.CopyBuffer(struct{ io.Writer }{i}, struct{ io.Reader }{data}, buffer)
	if errors.Is(err, errRefused) {
		return nil // done tells why
	}
	if err != nil {
		return fail(codeCannotRead, "CANNOT_READ_ALL_DATA", "the data ended early: %v", err)
	}
	return nil
}
