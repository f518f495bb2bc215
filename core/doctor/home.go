package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"sandbox/core/engine"
	"sandbox/core/store"
)

// leastFree is how many bytes of the disk must be free for a box to be made.
const leastFree = 128 << 20

// existing returns the home, or the nearest parent directory that exists,
// because a check must not make the home.
func existing(home string) string {
	for {
		if info, err := os.Stat(home); err == nil && info.IsDir() {
			return home
		}
		parent := filepath.Dir(home)
		if parent == home {
			return home
		}
		home = parent
	}
}

// unfit are the file systems that can't hold a box's writable layer.
var unfit = map[string]bool{"overlay": true, "nfs": true, "nfs4": true, "cifs": true, "smb3": true, "9p": true, "vfat": true, "squashfs": true, "iso9660": true}

func home(_ context.Context, c engine.Config) (string, *lack) {
	dir := existing(c.Home)
	kind, err := fileSystem(dir)
	if err != nil {
		return c.Home, &lack{err.Error(), ""}
	}
	found := fmt.Sprintf("%s on %s", c.Home, kind)
	if unfit[kind] {
		return found, &lack{kind + " can't hold boxes", "SANDBOX_HOME=DIR on ext4, xfs, btrfs or tmpfs"}
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return found, &lack{fmt.Sprintf("%s can't be written: %v", dir, err), "SANDBOX_HOME=DIR with a directory that can be written to"}
	}
	return found, nil
}

// fileSystem returns the type of the file system that dir is on.
func fileSystem(dir string) (string, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_MNT_ID, &st); err != nil {
		return "", fmt.Errorf("stat %s: %w", dir, err)
	}
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		same := uint64(m.ID) == st.Mnt_id
		return !same, same
	})
	if err != nil || len(mounts) == 0 {
		return "", errors.Join(fmt.Errorf("find the mount of %s", dir), err)
	}
	return mounts[0].FSType, nil
}

// records reports the damaged records of the home that were set aside until a
// person looks at them.
func records(_ context.Context, c engine.Config) (string, *lack) {
	var aside []string
	for _, dir := range []string{"records", "spool/*", "daemon/keys", "images"} {
		found, err := fs.Glob(os.DirFS(c.Home), dir+"/*"+store.AsideSuffix)
		if err != nil {
			return "", &lack{err.Error(), ""}
		}
		for _, name := range found {
			aside = append(aside, filepath.Join(c.Home, name))
		}
	}
	if len(aside) == 0 {
		return "all readable", nil
	}
	return fmt.Sprintf("%d damaged", len(aside)), &lack{
		"damaged records were set aside: " + strings.Join(aside[:min(len(aside), maxNamed)], ", "),
		"sandbox rm --force BOX for each box shown as failed with storage_error, then rm these files",
	}
}

// maxNamed is how many files are named in one message.
const maxNamed = 10

// space returns the space of the disk that the home is on, or will be on.
func space(c engine.Config) (engine.Space, error) {
	c.Home = existing(c.Home)
	return c.Space()
}

func disk(_ context.Context, c engine.Config) (string, *lack) {
	s, err := space(c)
	if err != nil {
		return "", &lack{err.Error(), ""}
	}
	found := fmt.Sprintf("%d MiB free", s.Free>>20)
	if s.Free < s.Floor {
		return found, &lack{
			fmt.Sprintf("less than the floor of %d MiB: no box is made or started", s.Floor>>20),
			"sandbox rm boxes and sandbox images rm images, or disk_floor_mib in " + filepath.Join(c.Home, "config.toml"),
		}
	}
	if s.Free < leastFree {
		return found, &lack{fmt.Sprintf("less than %d MiB", leastFree>>20), "sandbox rm boxes and sandbox images rm images, or SANDBOX_HOME=DIR elsewhere"}
	}
	return found, nil
}

// growth names the boxes that take up most of the disk. They are a lack once the
// disk gets full.
func growth(ctx context.Context, c engine.Config) (string, *lack) {
	boxes, err := c.Largest(ctx, maxNamed)
	if err != nil {
		return "", &lack{err.Error(), ""}
	}
	found := "no boxes"
	if len(boxes) > 0 {
		found = "largest: " + engine.Names(boxes)
	}
	s, err := space(c)
	if err != nil || !s.Low() || len(boxes) == 0 {
		return found, nil //nolint:nilerr // the check of the disk has told it
	}
	return found, &lack{
		fmt.Sprintf("%d MiB are free, and boxes without a disk size can take them", s.Free>>20),
		fmt.Sprintf("sandbox rm BOX; for boxes made from now on disk_ceiling_gb = 10 in %s, or --disk 10 (disk_size_gb) for one", filepath.Join(c.Home, "config.toml")),
	}
}
