/*
 * sandbox.hpp - the C++ interface of sandbox: header-only, C++17 or newer, over
 * the functions of sandbox.h. What a box is, what the host needs and what each
 * call does stands there; docs/cpp.md shows it in use.
 *
 *   c++ -std=c++17 prog.cpp $(pkg-config --cflags --libs sandbox)
 *   find_package(Sandbox) and Sandbox::sandbox in CMake
 *
 * A failure is an exception, of one class below sandbox::error for each error
 * code (sandbox/words.hpp). A document is JSON text, as sandbox.h describes it.
 * Objects own what they stand for and can be moved; one that was closed or
 * moved from answers with invalid_argument_error. An exception of a function of
 * yours that is called in between comes out of the call that called it.
 *
 * Threads are as in sandbox.h: a runtime may be shared, a box is used by one
 * thread at a time, and while one thread reads an execution or waits for it,
 * others may write, signal and close it; of a watch, a run of code and a build
 * one thread reads, and others may close it. Nobody moves an object that another
 * thread uses.
 */
#ifndef SANDBOX_HPP
#define SANDBOX_HPP

#include "sandbox/box.hpp"
#include "sandbox/build.hpp"
#include "sandbox/code.hpp"
#include "sandbox/error.hpp"
#include "sandbox/execution.hpp"
#include "sandbox/options.hpp"
#include "sandbox/runtime.hpp"
#include "sandbox/watch.hpp"
#include "sandbox/words.hpp"

#endif /* SANDBOX_HPP */
