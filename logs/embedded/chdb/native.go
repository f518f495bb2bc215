package chdb

import (
	"fmt"

	"github.com/ClickHouse/ch-go/proto"
)

// revision is the version of the native protocol in which the driver's own
// questions are answered.
const revision = 54460

// greeting returns the answer to the driver's first question, as one block.
func (s *server) greeting() ([]byte, error) {
	var rows [][]string
	if err := s.rows("SELECT displayName(), version(), timezone()", &rows); err != nil {
		return nil, err
	}
	text := func(s string) *proto.ColStr {
		c := new(proto.ColStr)
		c.Append(s)
		return c
	}
	return block(proto.Input{
		{Name: "displayName()", Data: text(rows[0][0])},
		{Name: "version()", Data: text(rows[0][1])},
		{Name: "revision()", Data: &proto.ColUInt32{revision}},
		{Name: "timezone()", Data: text(rows[0][2])},
	})
}

// one returns the answer to the driver's ping.
func one() []byte {
	b, _ := block(proto.Input{{Name: "1", Data: &proto.ColUInt8{1}}}) // columns of one length can't fail
	return b
}

func block(columns proto.Input) ([]byte, error) {
	b := new(proto.Buffer)
	p := proto.Block{Rows: 1, Columns: len(columns)}
	if err := p.EncodeBlock(b, revision, columns); err != nil {
		return nil, fmt.Errorf("encode a block of %d columns: %w", len(columns), err)
	}
	return b.Buf, nil
}
