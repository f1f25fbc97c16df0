// Whose code a stack frame is, and how to show it.
#pragma once

#include <string>
#include <vector>

#include "doctor/snapshot/snapshot.h"

namespace headroom::doctor {

enum class FrameOrigin : uint8_t {
  program,  // Python code of the user or of a library on top of PyTorch
  torch,    // Python code of PyTorch
  runtime,  // Python's standard library and interpreter
  native,   // C++
};
FrameOrigin frame_origin(const StackFrame& frame);

// "transformers/models/llama/modeling_llama.py:176 forward": below site-packages, else the last two parts of the path.
std::string shown_frame(const StackFrame& frame);

// For each stack of the table the line of code it is counted under: the innermost frame of `program`; without one the
// innermost of PyTorch's Python code; without that the backward function of a C++ stack ("MulBackward0 (C++)"), or its
// innermost function that is not the allocator's. Empty for the empty stack.
std::vector<std::string> places_of(const StackTable& stacks);

}  // namespace headroom::doctor
