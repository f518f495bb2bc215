package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"sandbox/core/fault"
)

// pageSize is how many entries one request asks for, the most that the service
// allows.
const pageSize = 1000

// pages reads all pages of a listing, whose entries are in member. An entry can
// be on two pages if others were made in between; it is returned once.
func pages[T any](ctx context.Context, c *Client, path string, query url.Values, member string, id func(T) string) ([]T, error) {
	all, seen := []T{}, map[string]bool{}
	for {
		var page map[string]json.RawMessage
		if err := c.call(ctx, request{method: http.MethodGet, path: path, query: query, again: true}, &page); err != nil {
			return nil, err
		}
		var entries []T
		var next *string
		if err := json.Unmarshal(page[member], &entries); err != nil {
			return nil, fault.Wrap(fault.Upstream, err, "%s sent a list without %s", c.url, member)
		}
		if token := page["next_page_token"]; token != nil {
			if err := json.Unmarshal(token, &next); err != nil {
				return nil, fault.Wrap(fault.Upstream, err, "%s sent a list whose next page can't be requested", c.url)
			}
		}
		for _, entry := range entries {
			if !seen[id(entry)] {
				seen[id(entry)] = true
				all = append(all, entry)
			}
		}
		if next == nil || *next == "" || len(entries) == 0 {
			return all, nil
		}
		query.Set("page_token", *next)
	}
}
