import { whole } from "./check.js";
import { InvalidArgumentError } from "./contract.js";

/** The names of Linux's signals, from 1. */
const names = ("HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT " +
  "CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS").split(" ");

/** numberOf returns the number of a signal. */
export function numberOf(signal: string | number): number {
  if (typeof signal === "number") return whole("signal", signal, 1, 64);
  const number = names.indexOf(String(signal).replace(/^SIG/, "")) + 1;
  if (number === 0) throw new InvalidArgumentError(`there is no signal ${JSON.stringify(signal)}`);
  return number;
}

/** nameOf returns the name of a signal. */
export function nameOf(signal: string | number): string {
  const name = names[numberOf(signal) - 1];
  if (name === undefined) throw new InvalidArgumentError(`signal ${signal} has no name, and servers take no other`);
  return name;
}
