package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sandbox/client"
)

func (a *app) consoleCmd() *cobra.Command {
	var noOpen bool
	cmd := &cobra.Command{
		Use:   "console [FLAGS]",
		Short: "Sign a browser in to the server's web console",
		Long: `Print a link that signs a browser in to the web console of a server, and open it
where there is a display. The link works once, within 5 minutes.

The browser then has the rights of this command: those of its API key, as long
as the key lives, or all of them through the socket of this host's daemon. It is
signed out after 30 minutes without use, and after 12 hours in any case.`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&noOpen, "no-open", false, "print the link and open no browser")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		return a.withServer(ctx, func(c *client.Client) error {
			link, until, err := c.ConsoleLink(ctx)
			if err == nil && !noOpen {
				openBrowser(link)
			}
			return a.show(consoleLink{link, until}, err, [][]any{{link}})
		})
	}
	return cmd
}

type consoleLink struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// openBrowser opens a link where there is a display. Nothing is said if that fails:
// the user has the link. Every user of the host can read arguments, so the browser
// is given the name of a file that leads to the link.
func openBrowser(link string) {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return
	}
	name := filepath.Join(dir, "sandbox", "console.html")
	if os.MkdirAll(filepath.Dir(name), 0o700) != nil || os.WriteFile(name, []byte(leadingTo(link)), 0o600) != nil {
		return
	}
	browser := exec.Command("xdg-open", name)
	browser.SysProcAttr = &unix.SysProcAttr{Setsid: true} // it stays when this command has ended
	if browser.Start() == nil {
		_ = browser.Process.Release()
	}
}

// leadingTo returns a page that leads to a link, which has no character that HTML
// knows.
func leadingTo(link string) string {
	return `<!doctype html><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=` + link + `">`
}
