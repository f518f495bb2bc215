package contestants

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// warmImage is the name of the image of [Field.Warm].
const warmImage = "localhost/warm:1"

// warmPool is how many boxes it keeps ready.
const warmPool = 2

// Warm returns the library with a home of its own that keeps boxes ready, and whose
// boxes are made from an image of the root file system that everyone has. The
// caller closes it.
func (b *Field) Warm(ctx context.Context) (*Ours, error) {
	home := filepath.Join(b.Dir, "warm")
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(home, "config.toml"), fmt.Appendf(nil, "pool = %d\n", warmPool), 0o600); err != nil {
		return nil, err
	}
	o := openOurs(b, home)
	o.rootfs, o.image = "", warmImage
	if o.Why == "" {
		if _, err := o.host.Images.Import(ctx, warmImage, b.Rootfs, nil); err != nil {
			return nil, err
		}
	}
	return o, nil
}
