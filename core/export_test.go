package core

// Noted returns how many boxes the runtime has noted.
func (r *Runtime) Noted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.made)
}
