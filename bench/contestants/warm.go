package contestants

import (
	"context"
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
	o := openOurs(b, filepath.Join(b.Dir, "warm"), warmPool)
	o.rootfs, o.image = "", warmImage
	if o.Why == "" {
		if _, err := o.host.Images.Import(ctx, warmImage, b.Rootfs, nil); err != nil {
			return nil, err
		}
	}
	return o, nil
}
