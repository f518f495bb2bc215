// Package clickhouse sends queries to a ClickHouse server, a cluster, or the
// embedded engine, which answers the same HTTP interface. It is the only
// package that imports the driver. A call returns either a complete answer or
// an error, and the error is classified here, once.
package clickhouse

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/singleflight"

	"sandbox/core/fault"
)

// Client sends queries to one engine. Its methods may be called from any
// goroutine.
type Client struct {
	conn     driver.Conn
	readonly any    // value of the setting "readonly" for queries
	single   bool   // there is one host
	onDamage func() // see OnDamage; nil for none

	reading singleflight.Group
	mu      sync.Mutex
	schema  Schema    // the log table's, as it was last read
	until   time.Time // schema is used until then
}

// Limits of the driver's pool, for a DSN that does not set them. They are far
// above the number of queries that a service lets run at once.
const (
	maxConns    = 32
	dialTimeout = 5 * time.Second // for the connection and the driver's first question
	// lifetime is how long a connection is used where there are several hosts: after
	// it, one that was away, or is first in order, has its share again.
	lifetime = time.Minute
)

// Open makes a client of the servers that a DSN names, with their user,
// password and settings:
// "http://user:password@host:8123,host2:8123/?name=value", or https. It
// connects at the first call and not before. Errors: Config.
func Open(dsn string) (*Client, error) {
	const want = "want http://USER:PASSWORD@HOST:8123/ or https, with settings of the engine behind it"
	scheme, _, _ := strings.Cut(dsn, "://")
	if scheme != "http" && scheme != "https" {
		return nil, fault.New(fault.Config, "the DSN of ClickHouse is not one of HTTP: %s", want)
	}
	if scheme == "https" && !strings.Contains(dsn, "secure=") { // the driver needs both the scheme and this setting
		mark := "?"
		if strings.Contains(dsn, "?") {
			mark = "&"
		}
		dsn += mark + "secure=true"
	}
	o, err := clickhouse.ParseDSN(dsn)
	if err != nil {
		return nil, fault.New(fault.Config, "the DSN of ClickHouse can't be read: %s", want) // err may hold its password
	}
	if o.HttpHeaders == nil {
		o.HttpHeaders = make(map[string]string)
	}
	// net/http sends a request with this header again when a connection that it had used
	// before is cut without an answer, as those of a host that has been restarted are.
	// It can't send rows again, whose reader it has read.
	o.HttpHeaders["Idempotency-Key"] = "sandbox"
	return open(o)
}

// Dial makes a client that connects with dial. The errors of dial are returned
// as they are. Errors: Config.
func Dial(dial func(context.Context) (net.Conn, error)) (*Client, error) {
	return open(&clickhouse.Options{
		Protocol:    clickhouse.HTTP,
		Addr:        []string{"engine"},
		DialContext: func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) },
	})
}

// OnDamage has f called when a query fails because a file of the engine is damaged.
// Call it before the first query; f must not wait.
func (c *Client) OnDamage(f func()) { c.onDamage = f }

func open(o *clickhouse.Options) (*Client, error) {
	// The DSN may set readonly itself, for a user who is not allowed to set it
	// to 1 because the user's profile has set it already.
	c := &Client{readonly: 1, single: len(o.Addr) == 1}
	if v, ok := o.Settings["readonly"]; ok {
		c.readonly = v
	}
	delete(o.Settings, "readonly")
	if o.MaxOpenConns == 0 {
		o.MaxOpenConns = maxConns
	}
	if o.MaxIdleConns == 0 {
		o.MaxIdleConns = o.MaxOpenConns
	}
	if o.DialTimeout == 0 {
		o.DialTimeout = dialTimeout
	}
	if !c.single {
		o.DialStrategy = new(hosts).dial
		if o.ConnMaxLifetime == 0 {
			o.ConnMaxLifetime = lifetime
		}
	}
	o.Compression = nil // the embedded engine can't compress, and results are bounded
	var err error
	c.conn, err = clickhouse.Open(o)
	return c, fault.Wrap(fault.Config, err, "use ClickHouse")
}

// Close ends the client's connections.
func (c *Client) Close() error {
	if err := c.conn.Close(); err != nil {
		return fmt.Errorf("close the connections to ClickHouse: %w", err)
	}
	return nil
}
