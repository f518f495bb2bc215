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
	api.JavaScript: {
		"const kept = 'kept'", "console.log(kept)",
		[]string{
			"console.log('on'); while (true) ;",
			// Once it waits: Node.js has a moment before that in which a SIGINT is lost or ends it.
			"await new Promise((done) => setTimeout(done, 1)); console.log('on'); await new Promise(() => {})",
			// The program does not end at once, so that Node.js hears of the SIGINT first: see TestInterruptAtTheEnd.
			"require('child_process').execSync(`trap '' INT; echo on; sleep 1`, {stdio: 'inherit'}); for (;;) ;",
			"console.log('on'); for (;;) display(1)",
		},
		"",
	},
	api.Bash: {
		"kept=kept", "echo $kept",
		[]string{
			"echo on; while :; do :; done; echo never",
			"echo on; sleep 1000; echo never",
			"f() { while :; do sleep 0.01; done; echo never; }; echo on; f; echo never",
			"echo on; (while :; do :; done); echo never",
			"echo on; sleep 1000 | cat; echo never",
		},
		"Interrupted: the code was interrupted",
	},
}
