package mcp

import (
	"context"
	"errors"

	"sandbox/api"
	"sandbox/client"
)

// instructions tell a model what the tools are for.
const instructions = `Boxes are isolated Linux machines for running code. run makes a box for one command and removes it.
For several commands that share files, make a box with create_box and use exec, read_file and write_file on it.
Boxes are removed when this session ends: read what is worth keeping before that.`

// addTools adds all tools.
func (s *Server) addTools() error {
	errs := []error{
		add(s, tool{name: "run", open: true, description: "Run one command in a new box, which is removed afterwards with its files. For several commands use create_box and exec."}, run),
		add(s, tool{name: "create_box", description: "Make a box that runs until remove_box or the end of this session. Returns its id."}, createBox),
		add(s, tool{name: "exec", open: true, description: "Run a command in a box and wait for its end. Files stay for the next exec; processes that it leaves in the background go on."}, exec),
		add(s, tool{name: "read_file", readOnly: true, description: "Read a file of a box. What is not UTF-8 comes in base64. Of a long file only a part comes: truncated is true then, and offset reads on."}, readFile),
		add(s, tool{name: "write_file", description: "Write a file of a box, in place of one that is there. Missing directories are made."}, writeFile),
		add(s, tool{name: "list_boxes", readOnly: true, description: "List the boxes that this session may use."}, listBoxes),
		add(s, tool{name: "remove_box", description: "Remove a box that this session made, with its files and all that runs in it."}, removeBox),
	}
	if s.Logs != nil {
		errs = append(errs, add(s, tool{name: "query_logs", readOnly: true, description: "Run one SELECT (ClickHouse SQL) over the table otel_logs, which has the output of boxes and other logs. Columns: Timestamp, ServiceName, SeverityText, Body, LogAttributes and others. Use LIMIT."}, queryLogs))
	}
	return errors.Join(errs...)
}

// boxArguments say what box to make.
type boxArguments struct {
	Image string `json:"image,omitempty" jsonschema:"image of the box, such as python:3.12; leave it out for the default"`
}

// newBox are the arguments of create_box.
type newBox struct {
	boxArguments
	Name string `json:"name,omitempty" jsonschema:"a name to use in place of the id: letters, digits, _, . and -"`
}

func createBox(ctx context.Context, s *session, in newBox) (api.Box, error) {
	return s.create(ctx, s.newBox(in))
}

// oneBox are the arguments of a tool that needs a box alone.
type oneBox struct {
	Box string `json:"box" jsonschema:"id or name of the box"`
}

// removed is the result of remove_box.
type removed struct {
	ID string `json:"id"`
}

func removeBox(ctx context.Context, s *session, in oneBox) (removed, error) {
	id, ok := s.own(in.Box)
	if !ok {
		return removed{}, errNotOwn(in.Box)
	}
	return removed{id}, s.remove(ctx, id)
}

// boxes is the result of list_boxes.
type boxes struct {
	Boxes []api.Box `json:"boxes"`
}

func listBoxes(ctx context.Context, s *session, _ struct{}) (boxes, error) {
	all, err := s.Boxes.Boxes(ctx, client.Filter{})
	if err != nil {
		return boxes{}, err
	}
	reached := []api.Box{}
	for _, b := range all {
		if s.reaches(b) {
			reached = append(reached, b)
		}
	}
	return boxes{reached}, nil
}
