#include "doctor/messages/log_prefix.h"

#include <array>
#include <cctype>

namespace headroom::doctor {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }
bool word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.'; }

size_t digits_at(std::string_view s, size_t at) {
  size_t n = 0;
  while (at + n < s.size() && digit(s[at + n])) ++n;
  return n;
}

// A rank of at most five digits at `at`; nullopt when there is none.
std::optional<int> rank_at(std::string_view s, size_t at) {
  const size_t n = digits_at(s, at);
  if (n == 0 || n > 5) return std::nullopt;
  int value = 0;
  for (size_t i = 0; i < n; ++i) value = value * 10 + (s[at + i] - '0');
  return value;
}

// The number after the first of "TP", "rank=", "rank", "DP" and the like in a process name.
void rank_in_name(std::string_view name, std::optional<int>& rank) {
  for (const std::string_view key : {"rank=", "TP", "rank", "Rank"}) {
    const size_t at = name.find(key);
    if (at == std::string_view::npos) continue;
    if (const auto found = rank_at(name, at + key.size())) {
      rank = found;
      return;
    }
  }
}

// Each matcher returns the length of its prefix at the start of `s`, 0 if there is none.
using Matcher = size_t (*)(std::string_view s, bool first, std::optional<int>& rank);

// "[rank3]: ", "[default3]:", "[1,3]<stderr>:"
size_t bracketed_rank(std::string_view s, bool, std::optional<int>& rank) {
  for (const std::string_view key : {"[rank", "[default", "[Rank "}) {
    if (s.substr(0, key.size()) != key) continue;
    const auto found = rank_at(s, key.size());
    const size_t close = key.size() + digits_at(s, key.size());
    if (!found || close >= s.size() || s[close] != ']') return 0;
    rank = found;
    return close + 1 < s.size() && s[close + 1] == ':' ? close + 2 : close + 1;
  }
  if (s.size() < 6 || s[0] != '[' || digits_at(s, 1) == 0) return 0;
  const size_t comma = 1 + digits_at(s, 1);
  if (s[comma] != ',') return 0;
  const size_t close = comma + 1 + digits_at(s, comma + 1);
  if (s.substr(close, 5) != "]<std") return 0;
  const size_t end = s.find(':', close);
  if (end == std::string_view::npos || end > close + 12) return 0;
  rank = rank_at(s, comma + 1);
  return end + 1;
}

// "3: " of `srun --label`, only at the start of a line.
size_t srun_label(std::string_view s, bool first, std::optional<int>& rank) {
  const size_t n = digits_at(s, 0);
  if (!first || n == 0 || n > 5 || s.substr(n, 2) != ": ") return 0;
  rank = rank_at(s, 0);
  return n + 2;
}

// "(EngineCore_DP0 pid=123)", "(VllmWorker rank=1 pid=9)", "(train_fn pid=5, ip=...)", "(raylet)"
size_t process_name(std::string_view s, bool, std::optional<int>& rank) {
  if (s.empty() || s[0] != '(') return 0;
  const size_t close = s.substr(0, 160).find(')');
  if (close == std::string_view::npos) return 0;
  const std::string_view name = s.substr(1, close - 1);
  if (name.find("pid=") == std::string_view::npos && name != "raylet") return 0;
  rank_in_name(name, rank);
  return close + 1;
}

bool clock_at(std::string_view s, size_t at) {
  return digits_at(s, at) == 2 && at + 8 <= s.size() && s[at + 2] == ':' && digits_at(s, at + 3) == 2 &&
         s[at + 5] == ':' && digits_at(s, at + 6) == 2;
}

// Dates and times in common orders. Returns the end of the time, with fraction and zone; 0 when there is no time.
size_t clock_end(std::string_view s) {
  size_t at = 0;
  while (at < s.size() && at < 24 && !clock_at(s, at)) {
    if (!digit(s[at]) && std::string_view("-/T:, .").find(s[at]) == std::string_view::npos) return 0;
    ++at;
  }
  if (at >= s.size() || at >= 24) return 0;
  at += 8;
  if (at + 1 < s.size() && (s[at] == '.' || s[at] == ',') && digit(s[at + 1])) at += 1 + digits_at(s, at + 1);
  if (at < s.size() && s[at] == 'Z') return at + 1;
  if (at + 5 < s.size() && (s[at] == '+' || s[at] == '-') && digits_at(s, at + 1) >= 2) {
    at += 1 + digits_at(s, at + 1);
    if (at < s.size() && s[at] == ':' && digits_at(s, at + 1) == 2) at += 3;
  }
  return at;
}

// "2024-05-01 12:00:00,123", "[2025-06-18 18:11:03 TP0]", "05-01 12:00:00", "[441280.839852]"
size_t time_stamp(std::string_view s, bool, std::optional<int>& rank) {
  if (s.empty()) return 0;
  if (s[0] != '[') return digit(s[0]) ? clock_end(s) : 0;
  const size_t close = s.substr(0, 64).find(']');
  if (close == std::string_view::npos) return 0;
  const std::string_view inside = s.substr(1, close - 1);
  if (clock_end(inside) != 0) {
    rank_in_name(inside, rank);
    return close + 1;
  }
  const size_t start = inside.find_first_not_of(' ');
  if (start == std::string_view::npos) return 0;
  const size_t whole = digits_at(inside, start);
  const bool dmesg = whole > 0 && start + whole < inside.size() && inside[start + whole] == '.' &&
                     start + whole + 1 + digits_at(inside, start + whole + 1) == inside.size();
  return dmesg ? close + 1 : 0;
}

// "May  1 12:00:00 host kernel:" of syslog and journalctl
size_t syslog(std::string_view s, bool, std::optional<int>&) {
  static constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (s.size() < 20 || kMonths.find(s.substr(0, 3)) % 3 != 0 || s[3] != ' ') return 0;
  const size_t day = s[4] == ' ' ? 5 : 4;
  const size_t clock = day + digits_at(s, day) + 1;
  if (!clock_at(s, clock)) return 0;
  const size_t host = clock + 9;
  const size_t colon = s.substr(0, 160).find(": ", host);
  return colon == std::string_view::npos ? clock + 8 : colon + 1;
}

// A level followed by a timestamp or a source position, as in vLLM's "ERROR 05-01 12:00:00 [core.py:396] "
size_t level(std::string_view s, bool, std::optional<int>&) {
  for (const std::string_view name : {"INFO", "WARNING", "WARN", "ERROR", "CRITICAL", "DEBUG", "FATAL"}) {
    if (s.substr(0, name.size()) != name || s.size() <= name.size() + 1 || s[name.size()] != ' ') continue;
    if (clock_end(s.substr(name.size() + 1)) != 0) return name.size();
  }
  return 0;
}

// "[core.py:396]"
size_t source_position(std::string_view s, bool first, std::optional<int>&) {
  if (first || s.empty() || s[0] != '[') return 0;
  const size_t close = s.substr(0, 120).find(']');
  if (close == std::string_view::npos) return 0;
  const size_t colon = s.substr(0, close).find(".py:");
  return colon != std::string_view::npos && colon + 4 + digits_at(s, colon + 4) == close ? close + 1 : 0;
}

// "stderr F " of a container runtime; "service-1  | " of docker compose
size_t container(std::string_view s, bool first, std::optional<int>&) {
  if (!first && s.size() > 9 && (s.substr(0, 7) == "stderr " || s.substr(0, 7) == "stdout ") && s[8] == ' ') return 9;
  if (!first) return 0;
  size_t n = 0;
  while (n < s.size() && n < 64 && word(s[n])) ++n;
  if (n < 3 || !digit(s[n - 1]) || s.substr(0, n).find('-') == std::string_view::npos) return 0;
  size_t bar = n;
  while (bar < s.size() && s[bar] == ' ') ++bar;
  return bar > n && s.substr(bar, 2) == "| " ? bar + 2 : 0;
}

// "node17 slurmstepd[33]: " after a timestamp
size_t service(std::string_view s, bool first, std::optional<int>&) {
  if (first) return 0;
  size_t at = 0;
  for (int name = 0; name < 2; ++name) {
    const size_t start = at;
    while (at < s.size() && at - start < 64 && word(s[at])) ++at;
    if (at == start) return 0;
    if (name == 0 && (at >= s.size() || s[at++] != ' ')) return 0;
  }
  if (at >= s.size() || s[at] != '[') return 0;
  const size_t close = at + 1 + digits_at(s, at + 1);
  return close > at + 1 && s.substr(close, 3) == "]: " ? close + 3 : 0;
}

// "10.0.0.17: " of pdsh and DeepSpeed, "[pod/name/container] " of kubectl, "> " of a quoted text
size_t source(std::string_view s, bool first, std::optional<int>&) {
  if (!first) return 0;
  if (s.substr(0, 2) == "> ") return 2;
  if (s.substr(0, 5) == "[pod/") {
    const size_t close = s.substr(0, 200).find("] ");
    return close == std::string_view::npos ? 0 : close + 2;
  }
  size_t at = 0;
  for (int part = 0; part < 4; ++part) {
    const size_t digits = digits_at(s, at);
    if (digits == 0 || digits > 3) return 0;
    at += digits;
    if (s.substr(at, part < 3 ? 1 : 2) != (part < 3 ? "." : ": ")) return 0;
    at += part < 3 ? 1 : 2;
  }
  return at;
}

// " 12%|#2        | 12/100 [00:12<01:40,  1.10s/it]" of tqdm
size_t progress_bar(std::string_view s, bool, std::optional<int>&) {
  const size_t n = digits_at(s, 0);
  if (n == 0 || n > 3 || s.substr(n, 2) != "%|") return 0;
  const size_t close = s.substr(0, 240).find(']');
  return close == std::string_view::npos ? 0 : close + 1;
}

// What loggers put between the time and the text: "| ERROR    | app.train:main:12 - ", "- trainer - ERROR - ",
// "[hydra][ERROR] - ", "{subprocess.py:93} INFO - ". A separator is required between a name and the level, so that
// "CUDA ERROR" does not match.
size_t logger(std::string_view s, bool first, std::optional<int>&) {
  const auto name = [](char c) { return word(c) || c == ':' || c == '/' || c == '<' || c == '>'; };
  if (first) return 0;
  size_t at = 0;
  const auto marks = [&](std::string_view those) {
    bool seen = false;
    for (; at < s.size() && at < 160 && (s[at] == ' ' || those.find(s[at]) != std::string_view::npos); ++at)
      seen |= s[at] != ' ';
    return seen;
  };
  const auto level_at = [&]() -> size_t {
    for (const std::string_view level : {"INFO", "WARNING", "WARN", "ERROR", "CRITICAL", "DEBUG", "FATAL"})
      if (s.substr(at, level.size()) == level && (at + level.size() == s.size() || !word(s[at + level.size()])))
        return level.size();
    return 0;
  };
  bool marked = marks("-|[]{}");
  if (marked && level_at() == 0) {
    const size_t start = at;
    while (at < s.size() && at - start < 80 && name(s[at])) ++at;
    marked = marks("-|[]{}") && at > start;
  }
  const size_t length = marked ? level_at() : 0;
  if (length == 0) return 0;
  at += length;
  if (!marks("-|]")) return 0;
  const size_t end = at;
  while (at < s.size() && at - end < 80 && name(s[at])) ++at;  // loguru's source position
  return at > end && s.substr(end, at - end).find(':') != std::string_view::npos && s.substr(at, 3) == " - " ? at + 3
                                                                                                             : end;
}

// "E0501 12:00:00.123456  1234 main.cc:12] " of glog
size_t glog(std::string_view s, bool, std::optional<int>&) {
  if (s.size() < 24 || std::string_view("IWEF").find(s[0]) == std::string_view::npos || digits_at(s, 1) < 4 ||
      !clock_at(s, s.find(' ') + 1))
    return 0;
  const size_t close = s.substr(0, 120).find("] ");
  return close != std::string_view::npos && close > 0 && digit(s[close - 1]) ? close + 2 : 0;
}

constexpr std::array<Matcher, 13> kMatchers = {
    bracketed_rank,  process_name, time_stamp, syslog,       level,  container, srun_label,
    source_position, service,      source,     progress_bar, logger, glog};

}  // namespace

std::string_view without_prefixes(std::string_view line, std::optional<int>& rank) {
  bool first = true;
  for (int round = 0; round < 10; ++round) {
    const size_t start = line.find_first_not_of(' ');
    if (start == std::string_view::npos) return line;
    const std::string_view rest = line.substr(start);
    size_t length = 0;
    for (size_t m = 0; m < kMatchers.size() && length == 0; ++m) length = kMatchers[m](rest, first, rank);
    if (length == 0) return line;
    line = rest.substr(length);
    first = false;
  }
  return line;
}

}  // namespace headroom::doctor
