module sandbox

go 1.26.0

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3
	golang.org/x/sys v0.49.0
)

require go.uber.org/goleak v1.3.0

require (
	github.com/creack/pty v1.1.24 // indirect
	github.com/mattn/go-pointer v0.0.1 // indirect
)
