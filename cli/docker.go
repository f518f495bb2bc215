package cli

// dockerWords says what to type in place of the verbs of docker and podman that
// we don't have.
var dockerWords = map[string]string{
	"container": "sandbox ls, run, exec, rm: they need no noun in front",
	"commit":    "sandbox snapshot BOX NAME",
	"compose":   "sandbox create, once for each box",
	"history":   "sandbox images inspect IMAGE",
	"image":     "sandbox images",
	"load":      "sandbox import NAME FILE",
	"login":     "sandbox auth login for a server; a registry's credentials are those of 'docker login'",
	"logout":    "sandbox auth logout",
	"network":   "--network Isolated or None of sandbox create",
	"port":      "sandbox info BOX",
	"prune":     "sandbox gc for boxes that have ended, sandbox images prune for layers",
	"push":      "sandbox images push IMAGE",
	"rmi":       "sandbox images rm IMAGE",
	"save":      "sandbox export IMAGE FILE",
	"system":    "sandbox doctor, sandbox gc, sandbox info",
	"top":       "sandbox stats for what boxes use, sandbox ps BOX for commands, sandbox exec BOX -- ps for all processes",
	"unpause":   "sandbox resume BOX",
	"volume":    "-v HOST:GUEST of sandbox create: volumes are paths of the host, or claims of a cluster",
	"wait":      "sandbox attach BOX EXEC: it ends with the command's exit code",
}
