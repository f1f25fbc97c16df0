// How often a technique solved the threads whose solution is known (tests/doctor_remedies/threads.jsonl), by what
// little is always known of a program: that it is somebody's own, TensorFlow's, or that host memory ran out.
#pragma once

#include <span>
#include <string_view>

#include "doctor/remedies/remedy.h"

namespace headroom::doctor {

struct Frequency {
  std::string_view technique;
  double share;  // of the threads of that kind
};

enum class ThreadKind { own_program, tensorflow, host };

// The most frequent first; those that solved less than a fiftieth are left out.
std::span<const Frequency> frequencies(ThreadKind kind);
double frequency(ThreadKind kind, std::string_view technique);

// Of the first three remedies, the third gives way to one that solved far more threads of the kind and is not among
// them, unless that one was attempted or a situation with signs of its own supports the third.
void place_the_frequent(ThreadKind kind, std::vector<Remedy>& remedies);

}  // namespace headroom::doctor
