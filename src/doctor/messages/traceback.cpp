#include "doctor/messages/traceback.h"

#include <algorithm>
#include <string>

#include "doctor/messages/clean_line.h"

namespace headroom::doctor {
namespace {

constexpr size_t kLongest = 256;

std::string bounded(std::string_view text) { return printable(text.substr(0, kLongest)); }

int64_t line_number(std::string_view digits, size_t* length = nullptr) {
  int64_t value = 0;
  size_t n = 0;
  while (n < digits.size() && n < 9 && digits[n] >= '0' && digits[n] <= '9') value = value * 10 + (digits[n++] - '0');
  if (length != nullptr) *length = n;
  return value;
}

// "Module._call_impl(self, *args)" -> "_call_impl"; "<module>" stays.
std::string_view function_name(std::string_view written) {
  written = written.substr(0, written.find('('));
  while (!written.empty() && (written.back() == ' ' || written.back() == ',')) written.remove_suffix(1);
  const size_t dot = written.rfind('.');
  return dot == std::string_view::npos ? written : written.substr(dot + 1);
}

// File "train.py", line 5, in main
std::optional<Frame> python(std::string_view s) {
  const size_t open = s.find("File \"");
  if (open == std::string_view::npos) return std::nullopt;
  const size_t name = open + 6;
  const size_t close = s.find('"', name);
  if (close == std::string_view::npos) return std::nullopt;
  const size_t line = s.substr(0, close + 16).find("line ", close);
  if (line == std::string_view::npos) return std::nullopt;
  size_t digits = 0;
  Frame frame;
  frame.line = line_number(s.substr(line + 5), &digits);
  if (digits == 0) return std::nullopt;
  frame.file = bounded(s.substr(name, close - name));
  const std::string_view rest = s.substr(line + 5 + digits);
  if (rest.substr(0, 5) == ", in ") frame.function = bounded(function_name(rest.substr(5)));
  return frame;
}

// File ~/x/module.py:1501, in Module._call_impl(self)
std::optional<Frame> ipython(std::string_view s) {
  if (s.substr(0, 5) != "File ") return std::nullopt;
  const size_t colon = s.find(".py:");
  if (colon == std::string_view::npos) return std::nullopt;
  size_t digits = 0;
  Frame frame;
  frame.line = line_number(s.substr(colon + 4), &digits);
  if (digits == 0) return std::nullopt;
  frame.file = bounded(s.substr(5, colon + 3 - 5));
  const std::string_view rest = s.substr(colon + 4 + digits);
  if (rest.substr(0, 5) == ", in ") frame.function = bounded(function_name(rest.substr(5)));
  return frame;
}

// ~/x/module.py in forward(self, x)
std::optional<Frame> old_ipython(std::string_view s) {
  const size_t in = s.find(".py in ");
  if (in == std::string_view::npos || s.substr(0, in).find(' ') != std::string_view::npos) return std::nullopt;
  const std::string_view function = s.substr(in + 7);
  if (function.find('(') == std::string_view::npos && function.substr(0, 1) != "<") return std::nullopt;
  Frame frame;
  frame.file = bounded(s.substr(0, in + 3));
  frame.function = bounded(function_name(function));
  return frame;
}

// │ /src/train.py:56 in main    │
std::optional<Frame> rich(std::string_view s) {
  constexpr std::string_view kBar = "\xe2\x94\x82";
  if (s.substr(0, kBar.size()) != kBar) return std::nullopt;
  s.remove_prefix(kBar.size());
  const size_t end = s.rfind(kBar);
  if (end != std::string_view::npos) s = s.substr(0, end);
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  const size_t colon = s.find(".py:");
  if (colon == std::string_view::npos || s.substr(0, colon).find(' ') != std::string_view::npos) return std::nullopt;
  size_t digits = 0;
  Frame frame;
  frame.line = line_number(s.substr(colon + 4), &digits);
  const std::string_view rest = s.substr(colon + 4 + digits);
  if (digits == 0 || rest.substr(0, 3) != " in") return std::nullopt;
  frame.file = bounded(s.substr(0, colon + 3));
  if (rest.size() > 4) frame.function = bounded(function_name(rest.substr(4)));
  return frame;
}

// frame #5: torch::autograd::Engine::execute(...) + 0x1a (0x7f12 in /lib/libtorch_cpu.so)
std::optional<Frame> native(std::string_view s) {
  if (s.substr(0, 7) != "frame #") return std::nullopt;
  const size_t colon = s.find(": ");
  if (colon == std::string_view::npos || colon > 12) return std::nullopt;
  const std::string_view rest = s.substr(colon + 2);
  Frame frame;
  frame.line = -1;
  frame.function = bounded(rest.substr(0, rest.find(" + 0x")));
  const size_t in = rest.rfind(" in ");
  if (in != std::string_view::npos) frame.file = bounded(rest.substr(in + 4, rest.find_last_of(')') - in - 4));
  return frame;
}

}  // namespace

std::optional<Frame> parse_frame(std::string_view line) {
  const size_t start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos) return std::nullopt;
  line = line.substr(start, 4096);
  using Parser = std::optional<Frame> (*)(std::string_view);
  for (const Parser parser : {&python, &ipython, &rich, &native, &old_ipython}) {
    if (auto frame = parser(line)) return frame;
  }
  return std::nullopt;
}

FrameStore::Rank& FrameStore::rank_of(int rank) {
  if (ranks_.size() >= kRanks && ranks_.find(rank) == ranks_.end()) {
    const auto oldest = std::min_element(ranks_.begin(), ranks_.end(), [](const auto& a, const auto& b) {
      const int64_t last_a = a.second.entries.empty() ? 0 : a.second.entries.back().line;
      const int64_t last_b = b.second.entries.empty() ? 0 : b.second.entries.back().line;
      return last_a < last_b;
    });
    ranks_.erase(oldest);
  }
  return ranks_[rank];
}

void FrameStore::add(int rank, int64_t line, Frame frame) {
  Rank& own = rank_of(rank);
  if (own.entries.size() == kKept) own.entries.pop_front();
  own.entries.push_back({line, own.traceback, std::move(frame)});
}

void FrameStore::begin_traceback(int rank) { ++rank_of(rank).traceback; }

void FrameStore::set_code(int rank, std::string_view code) {
  const auto found = ranks_.find(rank);
  if (found == ranks_.end() || found->second.entries.empty()) return;
  const size_t start = code.find_first_not_of(" \t");
  if (start == std::string_view::npos) return;
  Frame& frame = found->second.entries.back().frame;
  if (frame.line >= 0 && frame.code.empty()) frame.code = printable(code.substr(start, 160));
}

std::vector<Frame> FrameStore::ending_at(Rank& rank, int64_t line) {
  std::vector<Frame> frames;
  int64_t below = line;
  std::optional<int64_t> traceback;
  for (auto entry = rank.entries.rbegin(); entry != rank.entries.rend() && frames.size() < kGiven; ++entry) {
    if (entry->line > line || entry->frame.line < 0) continue;
    if (entry->line <= rank.taken_to && entry->line < line) break;
    if (below - entry->line > kReach || (traceback && entry->traceback != *traceback)) break;
    traceback = entry->traceback;
    below = entry->line;
    frames.push_back(entry->frame);
  }
  std::reverse(frames.begin(), frames.end());
  return frames;
}

std::vector<Frame> FrameStore::starting_at(Rank& rank, int64_t line) {
  std::vector<Frame> frames;
  int64_t above = line;
  for (const Entry& entry : rank.entries) {
    if (entry.line < line || entry.frame.line >= 0 || frames.size() == kGiven) continue;
    if (entry.line - above > 12) break;
    above = entry.line;
    frames.push_back(entry.frame);
  }
  std::reverse(frames.begin(), frames.end());  // C++ traces list the innermost frame first
  return frames;
}

std::vector<Frame> FrameStore::take(int rank, int64_t line) {
  for (const int key : {rank, -1}) {
    const auto found = ranks_.find(key);
    if (found == ranks_.end()) continue;
    auto frames = ending_at(found->second, line);
    if (frames.empty()) frames = starting_at(found->second, line);
    if (frames.empty()) continue;
    found->second.taken_to = std::max(found->second.taken_to, line);
    return frames;
  }
  return {};
}

}  // namespace headroom::doctor
