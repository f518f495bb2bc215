module sandbox

go 1.26.0

require (
	github.com/google/go-containerregistry v0.22.1
	github.com/klauspost/compress v1.20.3
	golang.org/x/sys v0.49.0
)

require github.com/opencontainers/go-digest v1.0.0 // indirect
