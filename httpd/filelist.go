package httpd

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sandbox/api"
)

// listedFile is about how many bytes of JSON a file of a list has.
const listedFile = 256

// encodeFiles returns a page of files as JSON, as encode does: with 10,000 files, for
// which that takes as long as the rest of the request, in a third of the time.
func encodeFiles(page api.Files) []byte {
	b := append(make([]byte, 0, (len(page.Files)+1)*listedFile), `{"files":[`...)
	for i := range page.Files {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendFile(b, &page.Files[i])
	}
	return append(appendText(append(b, `],"next_page_token":`...), page.NextPageToken), '}')
}

// appendFile appends a file as JSON.
func appendFile(b []byte, f *api.File) []byte {
	b = quote(append(b, `{"name":`...), f.Name)
	b = quote(append(b, `,"path":`...), f.Path)
	if f.PathBase64 != "" {
		b = quote(append(b, `,"path_base64":`...), f.PathBase64)
	}
	b = quote(append(b, `,"type":`...), string(f.Type))
	b = strconv.AppendInt(append(b, `,"size":`...), f.Size, 10)
	b = quote(append(b, `,"mode":`...), f.Mode.String())
	b = strconv.AppendInt(append(b, `,"uid":`...), int64(f.UID), 10)
	b = strconv.AppendInt(append(b, `,"gid":`...), int64(f.GID), 10)
	b = appendText(append(b, `,"owner":`...), f.Owner)
	b = appendText(append(b, `,"group":`...), f.Group)
	b = append(f.ModifiedAt.AppendFormat(append(b, `,"modified_at":"`...), time.RFC3339Nano), '"')
	b = appendText(append(b, `,"target":`...), f.Target)
	if f.TargetBase64 != "" {
		b = quote(append(b, `,"target_base64":`...), f.TargetBase64)
	}
	if f.Unreadable {
		b = append(b, `,"unreadable":true`...)
	}
	return append(b, '}')
}

// appendText appends a text as JSON, and null for none.
func appendText(b []byte, text *string) []byte {
	if text == nil {
		return append(b, "null"...)
	}
	return quote(b, *text)
}

// quote appends a text, which is UTF-8, as JSON.
func quote(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text) // fails for what is not UTF-8 alone, and quotes it all the same
	return b
}
