package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sandbox/client"
	"sandbox/core/fault"
	"sandbox/profile"
)

func (a *app) authLoginCmd() *cobra.Command {
	var fromStdin bool
	var prefix string
	cmd := &cobra.Command{
		Use:   "login [--url URL] [--api-key-stdin] [--profile NAME]",
		Short: "Store a server's URL and your key for it",
		Long: `Store a server's URL and your key for it in a profile. The key is asked for on
the terminal, or read from standard input with --api-key-stdin; it is never an
argument, which others on the host could read. This does not contact the server:
'sandbox auth whoami' does.

Without --url the profile's URL stays, or is SANDBOX_REST_URL. The URL of a
hosted service ends in /api.`,
		Example: `  sandbox auth login --url https://boxes.example.com/api
  sandbox auth login --url http://127.0.0.1:9090 --api-key-stdin --profile work <key.txt`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&fromStdin, "api-key-stdin", false, "read the key from standard input")
	cmd.Flags().StringVar(&prefix, "path-prefix", "", "route prefix of a self-hosted server (default: SANDBOX_REST_PATH_PREFIX)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		profiles, err := profile.UserFile(os.Getenv("HOME"))
		if err != nil {
			return err
		}
		name := a.profileName()
		p, _, err := profiles.Get(name)
		if err != nil {
			return err
		}
		a.address(&p, prefix, cmd.Flags().Changed("path-prefix"))
		if p.URL == "" {
			return fault.New(fault.InvalidArgument, "no server is named for the key: name it with --url")
		}
		if p.APIKey, err = a.readKey(cmd.Context(), fromStdin); err != nil {
			return err
		}
		c, err := client.New(client.Options{URL: p.URL, Credential: client.NewApiKeyCredential(p.APIKey), PathPrefix: p.PathPrefix})
		if err != nil {
			return err
		}
		c.Close()
		if err := profiles.Put(name, p); err != nil {
			return err
		}
		return a.show(map[string]any{"profile": name, "url": p.URL}, nil, [][]any{{"stored a key for " + p.URL + " in profile " + name}})
	}
	return cmd
}

// address sets the profile's URL and route prefix. With another URL the prefix
// changes too, since it belongs to the server.
func (a *app) address(p *profile.Profile, prefix string, given bool) {
	address := a.target.URL
	if address == "" && p.URL == "" {
		address = os.Getenv(client.EnvURL)
	}
	if address != "" && address != p.URL {
		p.URL, p.PathPrefix = address, os.Getenv(client.EnvPathPrefix)
	}
	if given {
		p.PathPrefix = prefix
	}
}

// maxKey bounds how many bytes are read for a key.
const maxKey = 4096

// readKey reads a key from standard input, or asks for one on a terminal.
func (a *app) readKey(ctx context.Context, fromStdin bool) (string, error) {
	tty := asTerminal(a.In)
	var text []byte
	var err error
	switch {
	case fromStdin:
		text, err = io.ReadAll(io.LimitReader(a.In, maxKey+1))
		err = fault.Wrap(fault.Internal, err, "read the key")
	case tty != nil:
		text, err = a.askKey(ctx, tty)
	default:
		err = fault.New(fault.InvalidArgument, "there is no terminal to ask for the key on: pass it on standard input, with --api-key-stdin")
	}
	if err != nil {
		return "", err
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 || len(text) > maxKey {
		return "", fault.New(fault.InvalidArgument, "no key was given")
	}
	return string(text), nil
}

// askKey asks for the key on a terminal, which does not show what is typed. When
// ctx ends the terminal is put back into its former mode.
func (a *app) askKey(ctx context.Context, tty *os.File) ([]byte, error) {
	fd := int(tty.Fd())
	mode, err := term.GetState(fd)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "ask for the key")
	}
	fmt.Fprint(a.Err, "API key: ")
	defer fmt.Fprintln(a.Err)
	type answer struct {
		key []byte
		err error
	}
	typed := make(chan answer, 1)
	go func() { // ends with the line, or with the program
		key, err := term.ReadPassword(fd)
		typed <- answer{key, err}
	}()
	select {
	case t := <-typed:
		return t.key, fault.Wrap(fault.InvalidArgument, t.err, "no key was given")
	case <-ctx.Done():
		_ = term.Restore(fd, mode)
		return nil, fault.Wrap(fault.Canceled, ctx.Err(), "asking for the key")
	}
}
