package code_test

import "sandbox/api"

// interrupted has, for each language, code that never ends, and what its context still
// knows when it was interrupted.
var interrupted = map[api.Language]struct {
	before, after string
	endless       []string // each prints "on" first
	err           string
}{
	api.Python: {
		"kept = 'kept'", "print(kept)",
		[]string{
			"print('on')\nwhile True: pass",
			"import time; print('on'); time.sleep(1000)",
			"import subprocess; print('on'); subprocess.run(['sleep', '1000'])",
			"import asyncio; print('on'); await asyncio.sleep(1000)",
			"print('on')\nwhile True: display(1)",
		},
		"KeyboardInterrupt",
	},
}
