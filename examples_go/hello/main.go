// Command hello computes in a box that ends with it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"sandbox/core/local"
	"sandbox/core/options"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	host, err := local.Open(local.Config{Owned: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close(ctx)) }() // removes the box
	o := options.Defaults()
	o.Image = "default"
	// README begins
	box, _, err := host.Create(ctx, o) // host comes from local.Open: its boxes are in this process
	if err != nil {
		return err
	}
	result, err := box.Run(ctx, "python3", "-c", "print(2**100)")
	fmt.Print(result.Stdout)
	// README ends
	return err
}
