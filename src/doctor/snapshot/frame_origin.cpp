#include "doctor/snapshot/frame_origin.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace headroom::doctor {
namespace {

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool is_python(std::string_view file) {
  return ends_with(file, ".py") || (!file.empty() && file[0] == '<' && file != "<unknown>");
}

std::string with_slashes(std::string file) {
  std::replace(file.begin(), file.end(), '\\', '/');
  return file;
}

bool is_torch(std::string_view file) {
  static constexpr std::array<std::string_view, 20> kFolders = {"nn/",           "optim/",
                                                                "autograd/",     "utils/",
                                                                "cuda/",         "distributed/",
                                                                "amp/",          "_dynamo/",
                                                                "_inductor/",    "_functorch/",
                                                                "_ops.py",       "_tensor.py",
                                                                "functional.py", "_higher_order_ops/",
                                                                "_compile.py",   "serialization.py",
                                                                "storage.py",    "fx/",
                                                                "_subclasses/",  "_library/"};
  if (holds(file, "-packages/torch/")) return true;
  size_t at = file.substr(0, 6) == "torch/" ? 0 : file.find("/torch/");
  for (; at != std::string_view::npos; at = file.find("/torch/", at + 1)) {
    const std::string_view rest = file.substr(at + (file[at] == '/' ? 7 : 6));
    for (const std::string_view folder : kFolders)
      if (rest.substr(0, folder.size()) == folder) return true;
  }
  return false;
}

bool is_allocator(std::string_view function) {
  for (const char* part : {"CUDACachingAllocator", "CachingAllocator", "unwind::", "CapturedTraceback",
                           "gather_with_cpp", "StorageImpl", "empty_generic", "c10::alloc"})
    if (holds(function, part)) return true;
  return function.empty() || function == "??";
}

std::string native_place(const StackTable& table, const std::vector<uint32_t>& stack) {
  for (const uint32_t number : stack) {
    const std::string_view function = table.frames[number].function;
    const size_t at = function.find("Backward");
    if (at == std::string_view::npos) continue;
    size_t begin = at, end = at + 8;
    const auto is_word = [](char c) { return (c | 32) >= 'a' ? (c | 32) <= 'z' : (c >= '0' && c <= '9') || c == '_'; };
    while (begin > 0 && is_word(function[begin - 1])) --begin;
    while (end < function.size() && is_word(function[end])) ++end;
    return std::string(function.substr(begin, end - begin)) + " (C++)";
  }
  for (const uint32_t number : stack)
    if (const std::string& function = table.frames[number].function; !is_allocator(function))
      return function.substr(0, std::min<size_t>(60, function.find('('))) + " (C++)";
  return "C++ code";
}

std::string place_of(const StackTable& table, const std::vector<FrameOrigin>& origins,
                     const std::vector<uint32_t>& stack) {
  if (stack.empty()) return {};
  for (const FrameOrigin wanted : {FrameOrigin::program, FrameOrigin::torch})
    for (const uint32_t number : stack)
      if (origins[number] == wanted) return shown_frame(table.frames[number]);
  return native_place(table, stack);
}

}  // namespace

FrameOrigin frame_origin(const StackFrame& frame) {
  if (!is_python(frame.file)) return FrameOrigin::native;
  const std::string file = with_slashes(frame.file);
  if (is_torch(file)) return FrameOrigin::torch;
  if (file.substr(0, 7) == "<frozen") return FrameOrigin::runtime;
  const bool standard = holds(file, "/lib/python3.") || holds(file, "/Lib/");
  return standard && !holds(file, "-packages/") ? FrameOrigin::runtime : FrameOrigin::program;
}

std::string shown_frame(const StackFrame& frame) {
  std::string file = with_slashes(frame.file);
  const size_t packages = file.rfind("-packages/");
  if (packages != std::string::npos) file = file.substr(packages + 10);
  constexpr size_t kLongest = 48;
  if (packages == std::string::npos || file.size() > kLongest) {
    size_t at = file.rfind('/');
    if (at != std::string::npos && at > 0) at = file.rfind('/', at - 1);
    if (at != std::string::npos) file = file.substr(at + 1);
  }
  if (!is_python(frame.file)) return frame.function;
  return fmt::format("{}:{} {}", file, frame.line, frame.function);
}

std::vector<std::string> places_of(const StackTable& stacks) {
  std::vector<FrameOrigin> origins;
  origins.reserve(stacks.frames.size());
  for (const StackFrame& frame : stacks.frames) origins.push_back(frame_origin(frame));
  std::vector<std::string> places;
  places.reserve(stacks.stacks.size());
  for (const auto& stack : stacks.stacks) places.push_back(place_of(stacks, origins, stack));
  return places;
}

}  // namespace headroom::doctor
