// The kernel of JavaScript contexts: the program that runs the code of a context.
//
// It reads requests from its standard input and answers with frames on its standard
// output and standard error, in between what the code prints; package code says how
// both look. It needs nothing but Node.js 18 or later. `require` is that of the
// program that loads it, and `rest` is what it has read behind this source.
"use strict";

const fs = require("fs");
const inspector = require("inspector");
const net = require("net");
const { createRequire } = require("module");
const { Readable, Writable } = require("stream");
const { nextTick } = process; // the code may change it
const { setImmediate: turn } = require("timers"); // and the global one
const util = require("util");
const vm = require("vm");

// piece is how many bytes of a frame are written at once: pipes do not mix a write of up
// to PIPE_BUF bytes with those of other processes. head is the size of what stands before
// the payload.
const piece = 4096;
const head = 1 + 32 + 4 + 1;

// The host refuses larger frames.
const maxFrame = 8 << 20;

// The most characters of an error's texts.
const maxError = 256 << 10;

// The kernel's own state.
let nonce = ""; // of the run, or ""
let count = 0;
let begun = false; // the host was told that the run begins
let interrupted = null; // ends the run with an error, while one waits for a promise
let heard = false; // Node.js has told of a SIGINT in this run

// write writes all of a buffer to a descriptor, and returns when that is done.
function write(fd, buffer) {
  for (let at = 0; at < buffer.length; ) {
    try {
      at += fs.writeSync(fd, buffer, at);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5); // the code has changed the mode of the pipe
    }
  }
}

// send sends a frame to the host, behind all that was printed before.
function send(frame) {
  if (nonce === "") return; // no code runs
  const text = Buffer.from(encode(frame));
  const room = piece - head;
  for (let at = 0; at < text.length; at += room) {
    const part = text.subarray(at, at + room);
    write(1, Buffer.concat([start(part.length, at + room >= text.length ? "." : "+"), part]));
  }
}

// mark marks on standard error where a run begins or ends.
function mark() {
  write(2, start(0, "."));
}

function start(size, more) {
  return Buffer.from("\x1e" + nonce + size.toString(16).padStart(4, "0") + more, "latin1");
}

// encode returns a frame as JSON. It throws a RangeError if that is too large.
function encode(frame) {
  let text = JSON.stringify(frame);
  if (text.length > maxFrame && frame.result && frame.result.json !== undefined) {
    text = JSON.stringify({ ...frame, result: { ...frame.result, json: undefined } });
  }
  if (Buffer.byteLength(text) > maxFrame) {
    throw new RangeError(`a result of ${text.length} characters is too large to be shown: it may have ${maxFrame} bytes`);
  }
  return text;
}

// Output is a standard stream of the code. It writes at once, so that what is printed and
// shown keeps its order, and keeps no state that an interrupt could leave half changed.
class Output extends Writable {
  constructor(fd) {
    super();
    this.fd = fd;
  }
  write(chunk, encoding, done) {
    if (typeof encoding === "function") [encoding, done] = [undefined, encoding];
    write(this.fd, typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk);
    if (typeof done === "function") process.nextTick(done);
    return true;
  }
  end(chunk, encoding, done) {
    if (typeof chunk === "string" || chunk instanceof Uint8Array) this.write(chunk, encoding, done);
    return this; // the code can't close it
  }
}

// members are those of a result by their media types.
const members = {
  "text/plain": "text",
  "text/html": "html",
  "text/markdown": "markdown",
  "image/svg+xml": "svg",
  "image/png": "png",
  "image/jpeg": "jpeg",
  "application/pdf": "pdf",
  "text/latex": "latex",
  "application/json": "json",
  "application/javascript": "javascript",
};

// shows is the method by which a value shows itself, as Deno names it: it returns an object
// of its forms by their media types.
const shows = Symbol.for("Jupyter.display");

// resultOf returns the result that shows a value.
async function resultOf(value) {
  const result = { text: textOf(value) };
  const json = jsonOf(value);
  if (json !== undefined) result.json = json;
  const forms = value !== null && typeof value === "object" && typeof value[shows] === "function" ? await value[shows]() : {};
  for (const [kind, data] of Object.entries(forms)) {
    const member = members[kind];
    if (member === undefined) (result.extra ??= {})[kind] = data ?? null;
    else if (member === "json") result.json = data ?? null;
    else if (data instanceof Uint8Array) result[member] = Buffer.from(data).toString("base64");
    else if (!["png", "jpeg", "pdf"].includes(member)) result[member] = String(data);
    else if (Buffer.from(String(data), "base64").toString("base64") === String(data)) result[member] = String(data);
  }
  return result;
}

function textOf(value) {
  try {
    return util.inspect(value, { maxStringLength: 1 << 20 });
  } catch (error) {
    return `a value whose text can't be made: ${error}`;
  }
}

// jsonOf returns arrays and plain objects, which JSON can have.
function jsonOf(value) {
  if (!Array.isArray(value) && (value === null || typeof value !== "object" || Object.getPrototypeOf(value) !== Object.prototype)) {
    return undefined;
  }
  try {
    return JSON.parse(JSON.stringify(value));
  } catch {
    return undefined; // a circle, a BigInt, or a method that fails
  }
}

// display shows values, each as a result.
async function display(...values) {
  for (const value of values) send({ kind: "result", result: await resultOf(value) });
}

// The session evaluates code as consoles of browsers do: await may stand anywhere, and
// const and let may be declared again.
const session = new inspector.Session();
session.connect();

// own is where a function of ours stands while text that calls it is evaluated.
const own = Symbol.for("sandbox.own");
const call = new vm.Script(`globalThis[Symbol.for("sandbox.own")]()`, { filename: "<kernel>" });

// lending has text find f while use runs.
function lending(f, use) {
  Object.defineProperty(globalThis, own, { value: f, configurable: true });
  try {
    return use();
  } finally {
    delete globalThis[own];
  }
}

// guarded calls f. SIGINT ends f and all that it calls, whatever they do.
function guarded(f) {
  return lending(f, () => call.runInThisContext({ breakOnSigint: true }));
}

// evaluate returns the value of code, or throws what it throws. It tells the host that the
// code begins when SIGINT can end it.
function evaluate(code, name) {
  return new Promise((resolve, reject) => {
    interrupted = reject;
    const expression = `${code}\n//# sourceURL=${name}`;
    try {
      guarded(() => {
        begin();
        session.post("Runtime.evaluate", { expression, replMode: true, awaitPromise: true, userGesture: true }, (failed, answer) => {
          // After some SIGINTs Node.js evaluates nothing any more: the host begins the context anew.
          if (failed?.message.includes("Cannot find context")) process.exit(1);
          if (failed) return reject(new Error(failed.message));
          const thrown = answer.exceptionDetails;
          const value = take(thrown ? (thrown.exception ?? { value: thrown.text }) : answer.result);
          if (!thrown) return resolve({ value });
          reject(new Thrown(value, `${name}:${thrown.lineNumber + 1}:${thrown.columnNumber + 1}`));
        });
      });
    } catch (error) {
      heard = isInterrupt(error); // maybe after the end of a program has failed the run
      reject(error);
    }
  });
}

// Thrown holds what code has thrown, which may be anything, and where.
class Thrown {
  constructor(value, place) {
    this.value = value;
    this.place = place;
  }
}

// take returns the value that the session describes.
function take(described) {
  if (described.objectId === undefined) {
    if (described.unserializableValue === undefined) return described.value;
    return vm.runInThisContext(`(${described.unserializableValue})`);
  }
  let value;
  const functionDeclaration = `function () { "use strict"; globalThis[Symbol.for("sandbox.own")](this) }`;
  lending(
    (v) => (value = v),
    () => session.post("Runtime.callFunctionOn", { objectId: described.objectId, functionDeclaration }),
  );
  session.post("Runtime.releaseObject", { objectId: described.objectId });
  return value;
}

// begin tells the host that a run begins. SIGINT may end it anywhere: then it is told once
// more, which the host takes as if it were told once.
function begin() {
  if (begun) return;
  send({ kind: "begin", count: count + 1 });
  mark();
  begun = true;
}

// run runs the code of a request and answers it.
async function run(env, code) {
  const before = Object.fromEntries(Object.keys(env).map((name) => [name, process.env[name]]));
  Object.assign(process.env, env);
  let status = "succeeded";
  begun = false;
  heard = false;
  try {
    if (code === "") begin();
    else {
      const { value } = await evaluate(code, `code-${count + 1}`);
      interrupted = null;
      if (value !== undefined) send({ kind: "result", result: { ...(await resultOf(value)), is_main: true } });
    }
  } catch (error) {
    begin(); // Node.js may end it at once for a SIGINT that came before
    const cause = (await endedChild(error)) ? new Interrupted() : error;
    status = isInterrupt(cause) ? "interrupted" : "failed";
    send({ kind: "error", error: explain(cause) });
  }
  interrupted = null;
  for (const [name, value] of Object.entries(before)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  if (code !== "") count++; // one without code is not counted
  if (!(await ticks())) process.exit(1); // the host begins the context anew
  mark();
  send({ kind: "end", status });
  nonce = "";
}

function isInterrupt(error) {
  return error instanceof Interrupted || error?.code === "ERR_SCRIPT_EXECUTION_INTERRUPTED";
}

class Interrupted extends Error {}

// endedChild tells whether code failed since a SIGINT ended a program that it waited for.
// This process got that SIGINT too, and may hear of it only later: it must not end the next
// run. It hears of none where the program ended itself so.
async function endedChild(error) {
  try {
    if (error.value.signal !== "SIGINT") return false;
  } catch {
    return false; // no error of a program
  }
  await new Promise(turn);
  if (!heard) hear();
  return true;
}

// hear waits until Node.js has heard of a SIGINT. One that comes as a guarded call ends is
// not told to anybody, but its watchdog (SigintWatchdogHelper in its src/node_watchdog.cc)
// keeps the post of its semaphore, and so ends the next guarded call.
function hear() {
  try {
    guarded(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lateSignal));
  } catch {
    // it has heard
  }
}

// ticks tells whether Node.js still calls what process.nextTick was given. A SIGINT that
// ends the function by which it does so (processTicksAndRejections in its
// lib/internal/process/task_queues.js) leaves the calls in the queue for ever. Its streams
// need them, and so this kernel would get no further request.
async function ticks() {
  let called = false;
  nextTick(() => (called = true));
  await new Promise(turn);
  return called;
}

// lateSignal is how long, in milliseconds, this process may take to hear of a signal on a
// busy host. It is less than the host waits before it sends another one.
const lateSignal = 500;

// explain returns the error of a run, without the kernel's own frames.
function explain(error) {
  if (isInterrupt(error)) return { name: "Interrupted", value: "the code was interrupted", traceback: "Interrupted: the code was interrupted\n" };
  const { value, place } = error instanceof Thrown ? error : { value: error, place: "" };
  if (!util.types.isNativeError(value)) {
    const text = textOf(value).slice(0, maxError);
    return { name: "Uncaught", value: text, traceback: `Uncaught: ${text}\n` };
  }
  let [name, message, stack] = ["Error", "", ""];
  try {
    [name, message, stack] = [String(value.name), String(value.message), String(value.stack)];
  } catch {
    // its own getters fail
  }
  const lines = stack.split("\n").filter((line) => !/^\s+at .*(<kernel>|node:)|^\s+at new Promise \(<anonymous>\)$/.test(line));
  if (place !== "" && !stack.includes("code-")) lines.push(`    at ${place}`); // the code could not be read
  return { name, value: message.slice(0, maxError), traceback: lines.join("\n").slice(0, maxError) + "\n" };
}

// prepare gives the code what a program of Node.js has, and keeps from it what is ours.
function prepare() {
  for (const [name, fd] of [["stdout", 1], ["stderr", 2]]) {
    Object.defineProperty(process, name, { value: new Output(fd), configurable: true, enumerable: true, writable: true });
  }
  Object.defineProperty(process, "stdin", { value: Readable.from([]), configurable: true, enumerable: true, writable: true });
  Object.defineProperty(globalThis, "require", { value: createRequire(process.cwd() + "/"), configurable: true, writable: true });
  Object.defineProperty(globalThis, "display", { value: display, configurable: true, writable: true });
  process.on("SIGINT", () => {
    heard = true;
    interrupted?.(new Interrupted());
  });
  const late = (error) => write(2, Buffer.from(util.inspect(error) + "\n"));
  process.on("uncaughtException", late);
  process.on("unhandledRejection", late);
}

// input returns the descriptor of the requests. The code gets an empty one in its place,
// where the user of the process may open the pipe once more.
function input() {
  try {
    const moved = fs.openSync("/proc/self/fd/0", "r");
    fs.closeSync(0);
    fs.openSync("/dev/null", "r"); // the lowest that is free: 0
    return moved;
  } catch {
    return 0;
  }
}

// requests returns the fields of the requests, one after another.
async function* fields(rest) {
  const from = new net.Socket({ fd: input(), readable: true, writable: false });
  let parts = [];
  for await (const data of (async function* () {
    yield rest;
    yield* from;
  })()) {
    let at = 0;
    for (let end; (end = data.indexOf(0, at)) >= 0; at = end + 1) {
      parts.push(data.subarray(at, end));
      yield Buffer.concat(parts).toString();
      parts = [];
    }
    parts.push(data.subarray(at));
  }
}

async function serve() {
  const from = fields(rest);
  const next = async () => {
    const { value, done } = await from.next();
    if (done) process.exit(0); // the host has left
    return value;
  };
  for (;;) {
    const mine = await next();
    const env = {};
    for (let n = Number(await next()); n > 0; n--) {
      const pair = await next();
      const at = pair.indexOf("=");
      env[pair.slice(0, at)] = pair.slice(at + 1);
    }
    const code = await next();
    // A SIGINT that came before the request was for the run before: Node.js tells of it now,
    // while no code runs.
    await new Promise(turn);
    nonce = mine;
    await run(env, code);
  }
}

prepare();
serve();
