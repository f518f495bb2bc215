package contestants

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// warmImage is the name of the image of [Field.Warm].
const warmImage = "localhost/warm:1"

// Refill is the time that a pool is given to fill up again.
const Refill = 100 * time.Millisecond

// warmPool is how many boxes it keeps ready.
const warmPool = 2

// Warm returns the library with a home of its own that keeps boxes ready, and whose
// boxes are made from an image of the root file system that everyone has. The
// caller closes it.
func (b *Field) Warm(ctx context.Context) (*Ours, error) {
	o := openOurs(b, filepath.Join(b.Dir, "warm"), warmPool)
	o.rootfs, o.image = "", warmImage
	if o.Why == "" {
		if _, err := o.host.Images.Import(ctx, warmImage, b.Rootfs, nil); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// UnseenToOutput is CreateToOutput with an image of which no box was ever made.
// Importing it is not in the time.
func (o *Ours) UnseenToOutput(ctx context.Context) (time.Duration, error) {
	o.images++
	root := filepath.Join(o.Home, "..", "rootfs")
	mark := filepath.Join(root, "etc", "image") // makes the layer another one
	if err := os.WriteFile(mark, fmt.Appendln(nil, o.images), 0o600); err != nil {
		return 0, err
	}
	o.image = fmt.Sprintf("localhost/unseen:%d", o.images)
	if _, err := o.host.Images.Import(ctx, o.image, root, nil); err != nil {
		return 0, err
	}
	time.Sleep(Refill)
	return o.CreateToOutput(ctx)
}
