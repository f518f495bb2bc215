# shellcheck shell=bash disable=SC2154,SC2163 # variables are read and exported by their names
#
# The kernel of Bash contexts: the program that runs the code of a context.
#
# It reads requests from its standard input and answers with frames on its standard
# output and standard error, in between what the code prints; package code says how
# both look. It needs nothing but Bash 4.4 or later. All names of its own begin with
# __sandbox_. Code runs in this very shell, outside of functions, so that all that it
# defines, sets and changes stays.
#
# This text is a script on standard input, and each request begins with a line of it,
# which package code has: in a loop of ours, a "break" of the code would end that.

exec {__sandbox_in}<&0 {__sandbox_out}>&1 {__sandbox_err}>&2
__sandbox_count=0
__sandbox_running=

# __sandbox_write writes a piece to a descriptor. Where a program of the code has changed
# the mode of the pipe, none of it is written while the pipe is full.
__sandbox_write() {
	until printf '\x1e%s%04x.%s' "$__sandbox_nonce" "${#2}" "$2" 1>&"$1" 2>/dev/null; do
		command sleep 0.01 2>/dev/null || :
	done
}

# __sandbox_frame sends a frame, which is JSON of at most 4,000 characters.
__sandbox_frame() {
	__sandbox_write "$__sandbox_out" "$1"
}

# __sandbox_mark marks on standard error where a run begins or ends.
__sandbox_mark() {
	__sandbox_write "$__sandbox_err" ""
}

# __sandbox_field reads a field of a request. It ends the shell when the host has left.
__sandbox_field() {
	IFS= read -r -d '' "$1" <&"$__sandbox_in" || exit 0
}

# __sandbox_request reads a request, and sets the variables that only its run sees.
__sandbox_request() {
	local left pair name
	__sandbox_field __sandbox_next
	__sandbox_field left
	__sandbox_before=()
	for (( ; left > 0; left--)); do
		__sandbox_field pair
		name=${pair%%=*}
		if [[ -v $name ]]; then
			__sandbox_before+=("$name=${!name}")
		else
			__sandbox_before+=("$name")
		fi
		export "$pair"
	done
	__sandbox_field __sandbox_code
	__sandbox_nonce=$__sandbox_next
}

# __sandbox_restore gives the variables of the environment back what they had.
__sandbox_restore() {
	local pair
	for pair in "${__sandbox_before[@]}"; do
		if [[ $pair == *=* ]]; then
			export "$pair"
		else
			unset "$pair"
		fi
	done
}

# __sandbox_interrupt ends the code that runs: from here on each command returns from
# the function or the file that it stands in, instead of being run.
__sandbox_interrupt() {
	[[ $__sandbox_running == yes ]] || return 0 # between two runs, or once more
	__sandbox_running=interrupted
	shopt -s extdebug
	trap '__sandbox_return' DEBUG
}

# __sandbox_return has the command return that is about to be run, unless it is a line of a
# request, which stands in no function and no other file.
__sandbox_return() {
	((${#FUNCNAME[@]} == __sandbox_depth)) || return 2
}

__sandbox_measure() {
	__sandbox_depth=${#FUNCNAME[@]}
}

__sandbox_begin() {
	local count=$((__sandbox_count + 1))
	[[ -z $__sandbox_code ]] || __sandbox_count=$count # a run without code is not counted
	__sandbox_mark
	__sandbox_running=yes # who interrupts the run has read this frame before
	__sandbox_frame "{\"kind\":\"begin\",\"count\":$count}"
}

# __sandbox_end ends a run, whose code has ended with the exit code __sandbox_status. No run
# is under way any more, so that a late interrupt has no effect: it would have this function
# return in its middle. What the run was is in __sandbox_ended.
__sandbox_end() {
	local status=succeeded
	if [[ $__sandbox_ended == interrupted ]]; then
		status=interrupted
		__sandbox_frame '{"kind":"error","error":{"name":"Interrupted","value":"the code was interrupted","traceback":"Interrupted: the code was interrupted\n"}}'
	elif ((__sandbox_status != 0)); then
		status=failed
		__sandbox_frame "{\"kind\":\"error\",\"error\":{\"name\":\"ExitCode\",\"value\":\"$__sandbox_status\",\"traceback\":\"exit code $__sandbox_status\\n\"}}"
	fi
	__sandbox_restore
	__sandbox_mark
	__sandbox_frame "{\"kind\":\"end\",\"status\":\"$status\"}"
}

__sandbox_measure
trap __sandbox_interrupt INT
