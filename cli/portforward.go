package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core/fault"
	"sandbox/core/options"
)

func (a *app) portForwardCmd() *cobra.Command {
	return a.completeBoxes(&cobra.Command{
		Use:   "port-forward BOX [ADDRESS:]LOCAL:PORT...",
		Short: "Lead ports of this host to ports of a box",
		Long: `Lead TCP ports of this host to ports of a box, until it is interrupted. A box
without a network has ports too, and none need be published. LOCAL is the port of
this host, 0 for a free one, and PORT the port in the box; PORT alone means both.
The port of this host is open on 127.0.0.1, unless an ADDRESS is given; an IPv6
address stands in brackets.

One line on stdout names each port that is open. Where a connection can't be led
on, a line on stderr says why.`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			forwards, err := parseForwards(args[1:])
			if err != nil {
				return err
			}
			return a.with(cmd.Context(), false, func(on backend.Boxes) error { return a.forward(cmd.Context(), on, args[0], forwards) })
		},
	}, 1, api.Running)
}

// forward leads an address of this host to a port of a box.
type forward struct {
	Address string `json:"address"`
	Port    int    `json:"port"`
}

func parseForwards(args []string) ([]forward, error) {
	var all []forward
	for _, arg := range args {
		f, err := parseForward(arg)
		if err != nil {
			return nil, fault.Wrap(fault.InvalidArgument, err, "%q: want PORT, LOCAL:PORT or ADDRESS:LOCAL:PORT", arg)
		}
		all = append(all, f)
	}
	return all, nil
}

// parseForward reads an argument of port-forward.
func parseForward(arg string) (f forward, err error) {
	at := strings.LastIndexByte(arg, ':')
	if f.Port, err = strconv.Atoi(arg[at+1:]); err != nil {
		return f, errors.New("no number of a port")
	}
	if err := options.CheckPort(f.Port); err != nil {
		return f, err
	}
	address, local := "127.0.0.1", strconv.Itoa(f.Port)
	switch {
	case at < 0:
	case strings.Contains(arg[:at], ":"):
		if address, local, err = net.SplitHostPort(arg[:at]); err != nil {
			return f, err
		}
	default:
		local = arg[:at]
	}
	if _, err := strconv.ParseUint(local, 10, 16); err != nil {
		return f, errors.New("LOCAL is no number from 0 to 65535")
	}
	f.Address = net.JoinHostPort(address, local)
	return f, nil
}

// forward opens all ports, says so, and leads what connects to the box until ctx ends.
func (a *app) forward(ctx context.Context, on backend.Boxes, ref string, forwards []forward) error {
	box, err := on.Box(ctx, ref) // a wrong name is told at once
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &tunnels{on: on, box: box.ID, told: a.Err}
	group, ctx := errgroup.WithContext(ctx)
	for i := range forwards {
		l, err := open(ctx, &forwards[i])
		if err != nil {
			return errors.Join(err, ended(cancel, group))
		}
		port := forwards[i].Port
		group.Go(func() error { return t.accept(ctx, l, port) })
	}
	if err := a.sayForwards(forwards); err != nil {
		return errors.Join(err, ended(cancel, group))
	}
	return cmp.Or(group.Wait(), ctx.Err())
}

// ended ends what a group does and waits for it.
func ended(cancel context.CancelFunc, group *errgroup.Group) error {
	cancel()
	return group.Wait()
}

// open opens a port of this host until ctx ends, and notes which one that is.
func open(ctx context.Context, f *forward) (net.Listener, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", f.Address)
	if err != nil {
		return nil, fault.Wrap(fault.PortInUse, err, "open a port of this host")
	}
	f.Address = l.Addr().String()
	context.AfterFunc(ctx, func() { _ = l.Close() })
	return l, nil
}

// sayForwards prints which ports are open.
func (a *app) sayForwards(forwards []forward) error {
	if a.asJSON() {
		return json.NewEncoder(a.Out).Encode(map[string]any{"forwards": forwards})
	}
	for _, f := range forwards {
		if _, err := fmt.Fprintf(a.Out, "%s -> %d\n", f.Address, f.Port); err != nil {
			return err
		}
	}
	return nil
}

// tunnels leads connections to ports of one box.
type tunnels struct {
	on  backend.Boxes
	box string

	mu   sync.Mutex
	told io.Writer
}

// accept leads all connections that a listener gets to a port, until ctx ends and all
// have ended.
func (t *tunnels) accept(ctx context.Context, l net.Listener, port int) error {
	var open sync.WaitGroup
	defer open.Wait()
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fault.Wrap(fault.ResourceExhausted, err, "accept a connection on %s", l.Addr())
		}
		open.Go(func() { t.lead(ctx, conn, port) })
	}
}

// lead leads one connection to a port, and closes it. Why that can't be is told before
// the client sees its end.
func (t *tunnels) lead(ctx context.Context, client net.Conn, port int) {
	defer client.Close()
	program, err := t.on.Connect(ctx, t.box, port)
	if err != nil {
		if ctx.Err() == nil {
			t.tell(err)
		}
		return
	}
	backend.Tunnel(ctx, client, program)
}

func (t *tunnels) tell(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = fmt.Fprintf(t.told, "sandbox: %s\n", printable(fault.Of(err).Message))
}
