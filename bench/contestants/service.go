package contestants

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/bench/harness"
	"sandbox/client"
	"sandbox/core/options"
	"sandbox/profile"
)

// serviceImage is the image of five layers in the service's home.
const serviceImage = LabImage

// Service is a daemon of ours, in a process of its own on a home of its own.
// Beside it are the things with which it is compared: the library on the same
// home, and net/http with nothing behind it, which also has a process of its
// own.
type Service struct {
	cmd    *exec.Cmd
	URL    string // over TCP
	key    string
	tcp    *client.Client // with the key
	Unix   *client.Client // through the socket
	http   *http.Client   // for what is compared with net/http
	Ours   *Ours          // the library
	Bare   *Bare
	log    string // the file of the daemon's log
	failed error  // why there is none
}

// Service returns the daemon and what is beside it. The first call starts them.
func (b *Field) Service(ctx context.Context) (*Service, error) {
	if b.service != nil {
		return b.service, b.service.failed
	}
	b.service = &Service{}
	b.service.failed = b.service.Start(ctx, b, "service")
	return b.service, b.service.failed
}

// Start starts them in a new directory of this name.
func (s *Service) Start(ctx context.Context, b *Field, name string) error {
	dir := filepath.Join(b.Dir, name)
	home, archive := filepath.Join(dir, "home"), filepath.Join(dir, "image.tar")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := makeImage(archive, b.Rootfs); err != nil {
		return err
	}
	s.Ours = openOurs(b, home, 0)
	if s.Ours.Why != "" {
		return errors.New(s.Ours.Why)
	}
	if _, err := s.Ours.host.Images.Import(ctx, serviceImage, archive, nil); err != nil {
		return err
	}
	if err := s.serve(b, dir, home); err != nil {
		return err
	}
	if err := s.connect(dir, home); err != nil {
		return err
	}
	var err error
	s.Bare, err = startBare(dir)
	return err
}

// serve starts the daemon and waits until it listens.
func (s *Service) serve(b *Field, dir, home string) error {
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(b.Tools, "sandbox"), "serve", "--listen", "127.0.0.1:0", "--e2b", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "SANDBOX_HOME="+home, "SANDBOX_HELPER_DIR="+b.Tools, "HOME="+dir) // the daemon writes the key below HOME
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd, s.log = cmd, log.Name()
	// The daemon's log is a file, as in normal use. With a pipe this process
	// would have to read along with every request. So there is nothing that
	// this process could wait for, and it looks again and again.
	often := time.NewTicker(10 * time.Millisecond)
	defer often.Stop()
	for deadline := time.Now().Add(harness.Timeout); time.Now().Before(deadline); <-often.C {
		said, err := os.ReadFile(log.Name())
		if err != nil || strings.Contains(string(said), "ready on") {
			return err
		}
	}
	said, _ := os.ReadFile(log.Name())
	return fmt.Errorf("the daemon is not ready: %.400s", said)
}

// connect makes the clients, with the key that the daemon has written.
func (s *Service) connect(dir, home string) error {
	p, ok, err := profile.File{Path: filepath.Join(dir, ".sandbox", "credentials.toml")}.Get(profile.Default)
	if err != nil || !ok {
		return errors.Join(errors.New("the daemon has left no key"), err)
	}
	s.URL, s.key = p.URL, p.APIKey
	s.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: readConnections}}
	if s.tcp, err = client.New(client.Options{URL: s.URL, Credential: client.NewApiKeyCredential(s.key)}); err != nil {
		return err
	}
	s.Unix, err = client.New(client.Options{URL: "unix://" + filepath.Join(home, "sandbox.sock")})
	return err
}

// As returns a contestant of the service.
func (s *Service) As(what string, run func(context.Context) (time.Duration, error)) harness.Contestant {
	return s.Ours.As(what, run)
}

// WithBox makes a box through the library, and keeps it as long as use runs. more may
// change its options.
func (s *Service) WithBox(ctx context.Context, use func(box string) error, more ...func(*options.Box)) error {
	box, err := s.Ours.Create(ctx, more...)
	if err != nil {
		return err
	}
	return errors.Join(use(box.ID()), s.Ours.Remove(ctx, box))
}

// Close ends the daemon, and what runs beside it.
func (s *Service) Close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	if s.http != nil {
		s.http.CloseIdleConnections()
	}
	var errs []error
	if s.cmd != nil {
		hung := time.AfterFunc(harness.Timeout, func() { _ = s.cmd.Process.Kill() })
		errs = append(errs, s.cmd.Process.Signal(unix.SIGTERM), s.cmd.Wait())
		hung.Stop()
	}
	return errors.Join(append(errs, s.Bare.close(), s.Ours.Close(ctx))...)
}
