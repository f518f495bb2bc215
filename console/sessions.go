// Package console is the web console as the daemon has it: the links that sign a
// browser in, its sessions, and the files of the page. The page itself is made from
// console/web.
//
// Only digests of tokens and ids are kept, so that the files of the home let nobody
// in.
package console

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"sync"
	"time"

	"sandbox/core/fault"
	"sandbox/core/store"
)

const (
	// Idle is how long a session lives without a request.
	Idle     = 30 * time.Minute
	lifetime = 12 * time.Hour  // of a session
	linkLife = 5 * time.Minute // of a link that is not used
	// writeAfter is how far the times on disk may lag behind, at which sessions
	// were last used.
	writeAfter = time.Minute
	// most bounds the sessions of a principal, and its links: a new one takes the
	// place of the oldest.
	most = 32
)

// Config says where sessions are kept.
type Config struct {
	Dir string           // sessions.json lies in it
	Log *slog.Logger     // nil for none
	Now func() time.Time // nil for the clock of the host
}

// Sessions are the sessions of a home, and the links that make new ones. They are
// safe for concurrent use. Only one process at a time may have a directory open.
type Sessions struct {
	Config
	file store.Dir[stored]

	mu       sync.Mutex
	sessions map[digest]*Session
	links    map[digest]link
	written  time.Time
}

// link is a sign-in that is offered.
type link struct {
	sub       string
	expiresAt time.Time
	until     *time.Time // when its sessions end at the latest; nil for no such time
}

// stored is the content of the file.
type stored struct {
	Sessions []record `json:"sessions"`
}

// record is a session as it is stored.
type record struct {
	Hash      digest    `json:"hash"` // SHA-256 of the id
	Sub       string    `json:"sub"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	SeenAt    time.Time `json:"seen_at"`
}

// fileKey is the record's key, and so the file's name without .json.
const fileKey = "sessions"

// Open reads the sessions. A file that is damaged is set aside, and the log names it:
// then everybody signs in anew. Errors: Storage.
func Open(c Config) (*Sessions, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Sessions{Config: c, file: store.Dir[stored]{Path: c.Dir}, sessions: map[digest]*Session{}, links: map[digest]link{}}
	all, err := s.file.Get(fileKey)
	switch {
	case errors.Is(err, store.ErrDamaged):
		return s, s.setAside(err)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	for _, r := range all.Sessions {
		if session := newSession(r); session.live(c.Now()) {
			s.sessions[r.Hash] = session
		}
	}
	return s, nil
}

func (s *Sessions) setAside(damage error) error {
	file, err := s.file.SetAside(fileKey)
	if s.Log != nil {
		s.Log.Error("the damaged file of the console's sessions was set aside, and everybody has to sign in again", "file", file, "damage", damage, "error", err)
	}
	return err
}

// Offer returns the token of a new link, which signs a browser in as the principal
// sub, once. The session ends at until at the latest, if that is not nil.
func (s *Sessions) Offer(sub string, until *time.Time) (token string, expiresAt time.Time) {
	token, hash := newSecret()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	s.makeRoomForLink(sub, now)
	l := link{sub, now.Add(linkLife), until}
	s.links[hash] = l
	return token, l.expiresAt
}

// makeRoomForLink forgets links that have expired, and the oldest of a principal that
// has as many as it may.
func (s *Sessions) makeRoomForLink(sub string, now time.Time) {
	maps.DeleteFunc(s.links, func(_ digest, l link) bool { return !now.Before(l.expiresAt) })
	var oldest digest
	count := 0
	for hash, l := range s.links {
		if l.sub == sub {
			if count++; count == 1 || l.expiresAt.Before(s.links[oldest].expiresAt) {
				oldest = hash
			}
		}
	}
	if count >= most {
		delete(s.links, oldest)
	}
}

// SignIn uses up a link and returns the id of a new session, which is stored nowhere,
// and whose session it is.
// Errors: Unauthenticated (the link is unknown, was used, or has expired), Storage.
func (s *Sessions) SignIn(token string) (id, sub string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hash, now := sha256.Sum256([]byte(token)), s.Now()
	l, offered := s.links[hash]
	delete(s.links, hash)
	if !offered || !now.Before(l.expiresAt) {
		return "", "", fault.New(fault.Unauthenticated, "the link was used already, or has expired: run 'sandbox console' for a new one")
	}
	s.purge(now)
	s.makeRoom(l.sub)
	id, hash = newSecret()
	expires := now.Add(lifetime)
	if l.until != nil && l.until.Before(expires) {
		expires = *l.until
	}
	s.sessions[hash] = newSession(record{hash, l.sub, now, expires, now})
	if err := s.write(true); err != nil {
		s.drop(s.sessions[hash])
		return "", "", err
	}
	return id, l.sub, nil
}

// purge ends the sessions that have expired.
func (s *Sessions) purge(now time.Time) {
	for _, session := range s.sessions {
		if !session.live(now) {
			s.drop(session)
		}
	}
}

// makeRoom ends the session of a principal that was used longest ago, if it has as
// many as it may.
func (s *Sessions) makeRoom(sub string) {
	var oldest *Session
	count := 0
	for _, session := range s.sessions {
		if session.Sub == sub {
			if count++; oldest == nil || session.seenAt.Before(oldest.seenAt) {
				oldest = session
			}
		}
	}
	if count >= most {
		s.drop(oldest)
	}
}

// drop ends a session without a write.
func (s *Sessions) drop(session *Session) {
	delete(s.sessions, session.hash)
	session.end()
}

// Enter begins a request of the session with this id. The context ends with the
// session, with the cause [ErrEnded]. The caller calls leave when the request has
// ended. A request that is background does not keep the session from being idle.
// Errors: Unauthenticated.
func (s *Sessions) Enter(ctx context.Context, id string, background bool) (_ context.Context, _ *Session, leave func(), err error) {
	if len(id) != secretLen {
		return nil, nil, nil, errEnded()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	session := s.sessions[sha256.Sum256([]byte(id))]
	if session == nil {
		return nil, nil, nil, errEnded()
	}
	if !session.live(now) {
		s.drop(session)
		return nil, nil, nil, errEnded()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(session.ended, func() { cancel(ErrEnded) })
	expiry := time.AfterFunc(session.ExpiresAt.Sub(now), func() { cancel(ErrEnded) })
	if !background {
		session.open++
		s.saw(session, now)
	}
	return ctx, session, func() {
		expiry.Stop()
		stop()
		cancel(nil)
		if !background {
			s.left(session)
		}
	}, nil
}

func (s *Sessions) left(session *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session.open--
	s.saw(session, s.Now())
}

// saw notes that a session was used.
func (s *Sessions) saw(session *Session, now time.Time) {
	session.seenAt = now
	if now.Sub(s.written) >= writeAfter {
		_ = s.write(false) // a later one tries again
	}
}

// write writes all sessions. The caller holds mu.
func (s *Sessions) write(durable bool) error {
	s.written = s.Now()
	all := stored{Sessions: []record{}}
	for _, session := range s.sessions {
		all.Sessions = append(all.Sessions, record{session.hash, session.Sub, session.CreatedAt, session.ExpiresAt, session.seenAt})
	}
	return s.file.Put(fileKey, all, durable)
}

// End ends a session. Errors: Storage.
func (s *Sessions) End(session *Session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(session)
	return s.write(true)
}

// EndAll ends all sessions of a principal, and takes back its links. Errors: Storage.
func (s *Sessions) EndAll(sub string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.links, func(_ digest, l link) bool { return l.sub == sub })
	before := len(s.sessions)
	for _, session := range s.sessions {
		if session.Sub == sub {
			s.drop(session)
		}
	}
	if len(s.sessions) == before {
		return nil
	}
	return s.write(true)
}
