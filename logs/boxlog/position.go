package boxlog

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/store"
	"sandbox/logs/clickhouse"
	"sandbox/logs/ingest"
	"sandbox/spool"
)

// position says how much of a box's main command is in the log table. It is on disk, so
// that the next daemon goes on there.
type position struct {
	Box    string         `json:"box"`
	Runs   map[string]ran `json:"runs,omitempty"` // by the id of the exec
	Health healthAt       `json:"health,omitzero"`
	// Storing is the earliest time of the rows that are being stored: of these nobody
	// knows whether they are in the table until it was asked. nil for none.
	Storing *time.Time `json:"storing,omitempty"`
}

// ran says how much of a run is in the table.
type ran struct {
	Began bool     `json:"began"`
	Ended bool     `json:"ended"`
	Bytes [2]int64 `json:"bytes"` // of each stream
}

// healthAt is a health and the run that had it.
type healthAt struct {
	Exec   string           `json:"exec"`
	Status api.HealthStatus `json:"status"`
}

func (r *Recorder) positions() store.Dir[position] { return store.Dir[position]{Path: r.Positions} }

// sweep forgets the positions of boxes that were removed while no daemon ran.
func (r *Recorder) sweep(there map[string]state) {
	if r.Positions == "" {
		return
	}
	all, _, _ := r.positions().List() // what can't be read costs a file
	for _, at := range all {
		if _, still := there[at.Box]; !still {
			_ = r.positions().Delete(at.Box)
		}
	}
}

func (p *position) set(id string, to ran) {
	if p.Runs == nil {
		p.Runs = map[string]ran{}
	}
	p.Runs[id] = to
}

// keep forgets the runs that are not among those that there are.
func (p *position) keep(places []spool.Place) {
	for id := range p.Runs {
		if !slices.ContainsFunc(places, func(one spool.Place) bool { return one.ID == id }) {
			delete(p.Runs, id)
		}
	}
}

// insert stores rows, and then calls commit, which notes that they are in the table. The
// position is written to disk before and afterwards: whatever happens in between, resume
// finds out whether they are there. Errors: those of [ingest.Writer].Store after which
// to try again, and Storage.
func (s *service) insert(rows []ingest.Row, commit func()) error {
	if len(rows) == 0 {
		return nil
	}
	first := slices.MinFunc(rows, func(a, b ingest.Row) int { return cmp.Compare(a.Nanoseconds, b.Nanoseconds) })
	from := time.Unix(0, first.Nanoseconds).UTC()
	s.at.Box, s.at.Storing = s.box, &from
	if err := s.r.positions().Put(s.box, s.at, false); err != nil {
		return err
	}
	err := s.r.Writer.Store(s.r.storing, rows) // a daemon that ends waits for it
	if err != nil && !later(err) && s.r.storing.Err() == nil {
		s.r.Log.Error("rows of a main command can't be stored", "box_id", s.box, "rows", len(rows), "error", err)
		err = nil
	}
	if err != nil {
		return err
	}
	commit()
	s.at.Storing = nil
	return s.r.positions().Put(s.box, s.at, false)
}

// later reports whether rows that were refused may be taken later.
func later(err error) bool {
	return fault.Is(err, fault.Unavailable) || fault.Is(err, fault.ResourceExhausted)
}

// stored finds what the table has of the main command of a box since a time.
const stored = `SELECT EventName AS event, LogAttributes['exec.id'] AS exec, LogAttributes['stream'] AS stream,
	max(toInt64OrZero(LogAttributes['exec.offset'])) AS bytes, max(toUnixTimestamp64Nano(Timestamp)) AS at
	FROM otel.otel_logs WHERE ServiceName = {service:String} AND ScopeName = 'sandbox' AND LogAttributes['main'] = 'true'
	AND Timestamp >= fromUnixTimestamp64Nano({from:Int64}) AND toStartOfFiveMinutes(Timestamp) >= toStartOfFiveMinutes(fromUnixTimestamp64Nano({from:Int64}))
	GROUP BY event, exec, stream ORDER BY at`

// resume finds out how many of the rows that were being stored are in the table, if that
// is not known. While none of them is, they may still come: see [Config].Late. Errors:
// Unavailable and others of the engine, and that of a recorder which closes.
func (s *service) resume() error {
	for over := time.Now().Add(s.r.Late); s.at.Storing != nil; pause(s.r.ctx) {
		came, err := s.ask()
		if err = errors.Join(err, s.r.ctx.Err()); err != nil {
			return err
		}
		if came || !time.Now().Before(over) {
			s.at.Storing = nil
			return s.r.positions().Put(s.box, s.at, false)
		}
	}
	return nil
}

// ask asks the table for what is in it since the rows that were being stored, and returns
// whether that is more than was known.
func (s *service) ask() (came bool, err error) {
	r, err := s.r.Engine.Query(s.r.ctx, clickhouse.Request{SQL: stored, Params: map[string]string{
		"service": serviceName(s.box), "from": strconv.FormatInt(s.at.Storing.UnixNano(), 10),
	}})
	if err != nil {
		return false, err
	}
	defer r.Free()
	var found []struct {
		Event  string `json:"event"`
		Exec   string `json:"exec"`
		Stream string `json:"stream"`
		Bytes  int64  `json:"bytes,string"`
	}
	if err := json.Unmarshal(r.Rows, &found); err != nil {
		return false, fault.Wrap(fault.Upstream, err, "read the rows of the log table")
	}
	runs, health := maps.Clone(s.at.Runs), s.at.Health
	for _, one := range found {
		s.at.found(one.Event, one.Exec, one.Stream, one.Bytes)
	}
	return s.at.Health != health || !maps.Equal(s.at.Runs, runs), nil
}

// found takes a row into account that is in the table.
func (p *position) found(event, exec, stream string, bytes int64) {
	at := p.Runs[exec]
	switch event {
	case "box." + string(api.Healthy), "box." + string(api.Unhealthy):
		p.Health = healthAt{exec, api.HealthStatus(strings.TrimPrefix(event, "box."))}
		return
	case commandStarted, commandRestarted:
		at.Began = true
	case commandEnded:
		at.Ended = true
	}
	if s := slices.Index(streams[:], stream); s >= 0 {
		at.Bytes[s] = max(at.Bytes[s], bytes)
	}
	p.set(exec, at)
}
