// Command generate writes the Go messages of httpd/e2b/protocol from its .proto
// files. It takes the directory of these files. All of it is Go: the compiler of
// .proto files is a module, and so is protoc-gen-go, of the version in go.mod.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate DIRECTORY")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run writes the messages of all .proto files of a directory beside them.
func run(ctx context.Context, dir string) error {
	files, err := generated(ctx, dir)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generated returns the Go files of the .proto files of a directory, by their names.
func generated(ctx context.Context, dir string) (map[string][]byte, error) {
	ask, err := request(ctx, dir)
	if err != nil {
		return nil, err
	}
	reply, err := protocGenGo(ctx, ask)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, f := range reply.GetFile() {
		files[f.GetName()] = []byte(f.GetContent())
	}
	return files, nil
}

// request compiles the .proto files into what a plugin of protoc is asked.
func request(ctx context.Context, dir string) (*pluginpb.CodeGeneratorRequest, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.proto"))
	if err != nil {
		return nil, err
	}
	ask := &pluginpb.CodeGeneratorRequest{Parameter: proto.String("paths=source_relative")}
	for _, path := range paths {
		ask.FileToGenerate = append(ask.FileToGenerate, filepath.Base(path))
	}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{dir}}),
		SourceInfoMode: protocompile.SourceInfoStandard, // comments go over to the Go files
	}
	compiled, err := compiler.Compile(ctx, ask.FileToGenerate...)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, f := range compiled {
		ask.ProtoFile = append(ask.ProtoFile, withImports(f, seen)...)
	}
	return ask, nil
}

// withImports returns a file behind all that it imports, each once.
func withImports(f protoreflect.FileDescriptor, seen map[string]bool) []*descriptorpb.FileDescriptorProto {
	if seen[f.Path()] {
		return nil
	}
	seen[f.Path()] = true
	var all []*descriptorpb.FileDescriptorProto
	imports := f.Imports()
	for i := range imports.Len() {
		all = append(all, withImports(imports.Get(i).FileDescriptor, seen)...)
	}
	return append(all, protodesc.ToFileDescriptorProto(f))
}

// protocGenGo asks protoc-gen-go, which speaks over its standard streams.
func protocGenGo(ctx context.Context, ask *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	in, err := proto.Marshal(ask)
	if err != nil {
		return nil, err
	}
	plugin := exec.CommandContext(ctx, "go", "run", "google.golang.org/protobuf/cmd/protoc-gen-go")
	plugin.Stdin, plugin.Stderr = bytes.NewReader(in), os.Stderr
	out, err := plugin.Output()
	if err != nil {
		return nil, fmt.Errorf("protoc-gen-go: %w", err)
	}
	var reply pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &reply); err != nil {
		return nil, err
	}
	if reply.Error != nil {
		return nil, fmt.Errorf("protoc-gen-go: %s", reply.GetError())
	}
	return &reply, nil
}
