// Whose code a stack frame is, and how to show it.
#pragma once

#include <string>
#include <vector>

#include "doctor/snapshot/snapshot.h"

namespace headroom::doctor {

enum class FrameOrigin : uint8_t {
  program,  // Python code of the user, or of a library that uses PyTorch
  torch,    // Python code of PyTorch
  runtime,  // Python's standard library and interpreter
  native,   // C++
};
FrameOrigin frame_origin(const StackFrame& frame);

// "transformers/models/llama/modeling_llama.py:176 forward": the part below site-packages, else the path's last two
// parts.
std::string shown_frame(const StackFrame& frame);

// For each stack of the table, the line of code to which it is attributed: the innermost frame of `program`, else the
// innermost frame of PyTorch's Python code, else the backward function of a C++ stack ("MulBackward0 (C++)") or its
// innermost function outside the allocator. Empty for the empty stack.
std::vector<std::string> places_of(const StackTable& stacks);

}  // namespace headroom::doctor
