package e2b

import (
	"strconv"

	"sandbox/api"
)

// permissions returns type and permission bits as ls -l shows them.
func permissions(f api.File) string {
	const letters = "rwxrwxrwx"
	text := []byte("----------")
	if letter, ok := typeLetters[f.Type]; ok {
		text[0] = letter
	}
	for i := range letters {
		if f.Mode&(1<<(len(letters)-1-i)) != 0 {
			text[1+i] = letters[i]
		}
	}
	for _, bit := range specialBits {
		if f.Mode&bit.mode == 0 {
			continue
		}
		if text[bit.at] == 'x' {
			text[bit.at] = bit.letter
		} else {
			text[bit.at] = bit.letter - 'a' + 'A'
		}
	}
	return string(text)
}

var typeLetters = map[api.FileType]byte{
	api.Directory: 'd', api.Symlink: 'l', api.FIFO: 'p', api.Socket: 's', api.CharDevice: 'c', api.BlockDevice: 'b',
}

// specialBits are the bits beyond rwx, and where they are shown.
var specialBits = []struct {
	mode   api.FileMode
	at     int
	letter byte
}{{0o4000, 3, 's'}, {0o2000, 6, 's'}, {0o1000, 9, 't'}}

// owner returns a name or, where there is none, the number.
func owner(name *string, id int) string {
	if name == nil {
		return strconv.Itoa(id)
	}
	return *name
}
