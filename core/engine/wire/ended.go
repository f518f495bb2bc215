package wire

// What the init of a pod says at its end, which is the message of its container then.
const (
	EndedOnRequest = "stopped on request"
	EndedOutside   = "stopped by a signal from outside"
	EndedSaved     = "stopped by a signal from outside, and the disk was saved"
	// These two go on with why.
	EndedUnsaved    = "stopped by a signal from outside, and the disk can't be saved: "
	EndedUnrestored = "the disk can't be restored: "
)

// What the check of the paths that a box shall see says at its end, if one can't be used. It
// goes on with which, and why.
const (
	PathUnusable = "a path can't be used: "
	PathOutside  = "a path is not shared: "
)
