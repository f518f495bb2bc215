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

// again is the pause before a kill is repeated. A kill does not find a
// statement that the engine does not know yet, and nothing tells when it does.
const again = 20 * time.Millisecond

// killer waits for the end of a statement. If its client disconnects before, it
// kills the statement again and again until it has ended. It does not use KILL
// QUERY ... SYNC, which would hang for ever.
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

// feed copies data into an insertion. Data that end early because the client
// disconnected must not be stored. The reader can tell this from the regular
// end of the data.
func feed(i insertion, data io.Reader) error {
	buffer := make([]byte, 256<<10)
	_, err := io.CopyBuffer(struct{ io.Writer }{i}, struct{ io.Reader }{data}, buffer)
	if errors.Is(err, errRefused) {
		return nil // done returns the reason
	}
	if err != nil {
		return fail(codeCannotRead, "CANNOT_READ_ALL_DATA", "the data ended early: %v", err)
	}
	return nil
}
