package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandbox/core/document"
	"sandbox/core/fault"
)

// maxArguments bounds the arguments of a call. A file that is written is among them.
const maxArguments = 16 << 20

// tool describes a tool to clients.
type tool struct {
	name, description string
	readOnly          bool // it changes nothing
	open              bool // what it does may reach beyond its box
}

// add adds a tool whose arguments are an In and whose result is an Out. Errors:
// Internal (they have no schema).
func add[In, Out any](s *Server, t tool, do func(context.Context, *session, In) (Out, error)) error {
	in, err := schema[In]()
	if err != nil {
		return err
	}
	for _, p := range in.Properties { // a member that is left out needs no null, which not all models know
		if slices.Contains(p.Types, "null") {
			p.Type, p.Types = p.Types[1], nil
		}
	}
	out, err := schema[Out]()
	if err != nil {
		return err
	}
	destructive := !t.readOnly
	s.tools.AddTool(&sdk.Tool{
		Name: t.name, Description: t.description, InputSchema: in, OutputSchema: out,
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.readOnly, DestructiveHint: &destructive, OpenWorldHint: &t.open},
	}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.life, cancel)()
		result, err := guarded(func() (result Out, err error) {
			var args In
			if err := read(r.Params.Arguments, &args, in.Required); err != nil {
				return result, err
			}
			return do(ctx, s.session(r.Session), args)
		})
		if err != nil {
			return s.failed(ctx, t.name, err), nil
		}
		return succeeded(result)
	})
	return nil
}

// schema returns the schema of a document.
func schema[T any]() (*jsonschema.Schema, error) {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[fault.Kind]():      {Type: "string"},
		reflect.TypeFor[json.RawMessage](): {},
	}})
	return s, fault.Wrap(fault.Internal, err, "describe %v", reflect.TypeFor[T]())
}

// read reads the arguments of a call. Errors: Malformed, which names all that is
// wrong.
func read(doc []byte, args any, required []string) error {
	if len(doc) == 0 {
		doc = []byte("{}")
	}
	p := document.Problems{Prefix: "invalid arguments: "}
	if err := p.Read(doc, args, maxArguments); err != nil {
		return err
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(doc, &given); err != nil {
		return fault.Wrap(fault.Malformed, err, "invalid arguments")
	}
	for _, name := range required {
		p.Required(name, given[name] != nil)
	}
	return p.Err(fault.Malformed)
}

// guarded makes a failure of a panic, which would end the process.
func guarded[T any](do func() (T, error)) (result T, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fault.New(fault.Internal, "panic: %v\n%s", v, debug.Stack())
		}
	}()
	return do()
}

// failed is the result of a call that failed: the code and the message of the
// contract. Models read it, as they read no error of the protocol.
func (s *Server) failed(ctx context.Context, tool string, err error) *sdk.CallToolResult {
	f := fault.Of(err)
	if s.Log != nil && f.Kind == fault.Internal {
		s.Log.LogAttrs(ctx, slog.LevelError, "a call of a tool failed", slog.String("tool", tool), slog.Any("error", err))
		f.Message = "internal error: the server's log has the details"
	}
	text := fmt.Sprintf("%s: %s", f.Kind, f.Message)
	if f.Prerequisite != "" {
		text += "\n" + f.Prerequisite
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// succeeded is the result of a call: a document, and as text what [textOf] makes of
// it.
func succeeded(result any) (*sdk.CallToolResult, error) {
	doc, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	text, ok := textOf(result)
	if !ok {
		text = string(doc)
	}
	return &sdk.CallToolResult{StructuredContent: json.RawMessage(doc), Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
}
