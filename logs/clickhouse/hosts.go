package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// downTime is how long a host that could not be reached is asked last. It is short, as
// the only harm of asking it again is to wait for it.
const downTime = 10 * time.Second

// hosts chooses the host of each new connection, among those that a DSN names. The
// driver would ask them in their order every time, and wait for one that does not
// answer until no time is left for the others.
type hosts struct {
	mu   sync.Mutex
	down map[string]time.Time // when a host could not be reached
}

// dial connects to the first host that answers. Each gets an equal share of the time
// that is left, so that all can be tried. It is the driver's DialStrategy.
func (h *hosts) dial(ctx context.Context, number int, o *clickhouse.Options, dial clickhouse.Dial) (r clickhouse.DialResult, err error) {
	order := h.order(number, o)
	for i, address := range order {
		if r, err = attempt(ctx, len(order)-i, address, o, dial); err == nil || ctx.Err() != nil {
			break
		}
		h.mark(address, time.Now())
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", errNoHost, err)
	}
	return r, err
}

var errNoHost = errors.New("no host of ClickHouse can be reached")

// attempt connects to a host within one part of the time that ctx leaves.
func attempt(ctx context.Context, parts int, address string, o *clickhouse.Options, dial clickhouse.Dial) (clickhouse.DialResult, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(parts))
		defer cancel()
	}
	return dial(ctx, address, o)
}

// mark notes that a host could not be reached.
func (h *hosts) mark(address string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down == nil {
		h.down = make(map[string]time.Time)
	}
	h.down[address] = at
}

// order returns the hosts in the order of the DSN's connection_open_strategy (in_order
// unless it says round_robin or random), and behind them those that were not reached
// lately.
func (h *hosts) order(number int, o *clickhouse.Options) []string {
	first := 0
	switch o.ConnOpenStrategy {
	case clickhouse.ConnOpenInOrder:
	case clickhouse.ConnOpenRoundRobin:
		first = number % len(o.Addr)
	case clickhouse.ConnOpenRandom:
		first = rand.IntN(len(o.Addr))
	}
	all := slices.Concat(o.Addr[first:], o.Addr[:first])
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortStableFunc(all, func(a, b string) int { return h.lately(a) - h.lately(b) })
	return all
}

// lately is 1 for a host that could not be reached a short time ago, else 0.
func (h *hosts) lately(address string) int {
	if at, ok := h.down[address]; ok && time.Since(at) < downTime {
		return 1
	}
	return 0
}

// again calls f until it does not fail because its connection's host has gone since
// the connection was last used: nothing was sent then. Each call takes another of the
// connections that wait for use, or makes a new one, which leads to a host that
// answers. (net/http has sent a query again by then that it had sent on a connection
// that was cut, see Open.)
func (c *Client) again(f func() error) error {
	for range maxConns {
		err := f()
		var network *net.OpError
		if c.single || !errors.As(err, &network) || network.Op != "dial" || errors.Is(err, errNoHost) {
			return err
		}
	}
	return f()
}
