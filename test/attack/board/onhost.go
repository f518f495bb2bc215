package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"sandbox/api"
)

// nobody is the user of the host that attacks from there are run as.
const nobody = 65534

// runOnHost runs the attacks of a family on the host, as a user without rights. They are
// told where the home is, and the processes of its shim and of the init of a box.
func (b *bench) runOnHost(ctx context.Context, program, id string) (string, error) {
	doc, err := b.sandbox(ctx, "-o", "json", "inspect", id)
	if err != nil {
		return "", err
	}
	var box api.Box
	if err := json.Unmarshal([]byte(doc), &box); err != nil {
		return "", fmt.Errorf("read the record of the box: %w", err)
	}
	if box.State.PID == nil {
		return "", errors.New("the box has no init")
	}
	shim, err := parent(*box.State.PID)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd.Env = []string{"BOARD_HOME=" + b.home, "BOARD_INIT=" + strconv.Itoa(*box.State.PID), "BOARD_SHIM=" + strconv.Itoa(shim)}
	out, err := cmd.Output()
	return string(out), err
}

// parent returns the parent of a process.
func parent(pid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "PPid:"); ok {
			return strconv.Atoi(strings.TrimSpace(text))
		}
	}
	return 0, fmt.Errorf("process %d has no parent", pid)
}
