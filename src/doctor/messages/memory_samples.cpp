#include "doctor/messages/memory_samples.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>

namespace headroom::doctor {
namespace {

constexpr double kMiB = 1024.0 * 1024, kGiB = 1024 * kMiB;

bool digit(char c) { return c >= '0' && c <= '9'; }
bool letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// A number in a line, with the words before it and its unit.
struct Named {
  std::string_view name;  // in lower case, from the previous number or separator
  std::string_view unit;  // the letters directly after it, in lower case
  double value = 0;
  bool fraction = false;
};

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return has(text, part); });
}

// Reads the digits at `at` into `number`; returns the end. "9,034" is one number.
size_t read_digits(std::string_view line, size_t at, Named& number) {
  const auto digit_at = [&](size_t i) { return i < line.size() && digit(line[i]); };
  double place = 1;
  size_t end = at;
  for (; end < line.size() && end - at < 40; ++end) {
    const char c = line[end];
    if (digit(c)) {
      number.value = number.fraction ? number.value + (place /= 10) * (c - '0') : number.value * 10 + (c - '0');
    } else if (c == '.' && digit_at(end + 1) && !number.fraction) {
      number.fraction = true;
    } else {
      const bool grouped = c == ',' && !number.fraction && digit_at(end + 1) && digit_at(end + 2) &&
                           digit_at(end + 3) && !digit_at(end + 4);
      if (!grouped) break;
    }
  }
  return end;
}

// The next number at or after `at`; moves `at` and `name_start` past it. The name starts after the field's separator at
// the earliest.
std::optional<Named> next_number(std::string_view line, size_t& at, size_t& name_start) {
  for (; at < line.size(); ++at) {
    if (!digit(line[at])) continue;
    if (at > 0 &&
        (std::isalnum(static_cast<unsigned char>(line[at - 1])) != 0 || line[at - 1] == '_' || line[at - 1] == '.')) {
      continue;
    }
    Named number;
    const size_t end = read_digits(line, at, number);
    number.name = line.substr(name_start, at - name_start);
    if (number.name.size() > 48) number.name.remove_prefix(number.name.size() - 48);
    const size_t separator = number.name.find_last_of(",;|{");
    if (separator != std::string_view::npos) number.name.remove_prefix(separator + 1);
    const size_t unit = end < line.size() && line[end] == ' ' ? end + 1 : end;
    size_t unit_end = unit;
    while (unit_end < line.size() && unit_end - unit < 6 && letter(line[unit_end])) ++unit_end;
    number.unit = line.substr(unit, unit_end - unit);
    at = end;
    name_start = end;
    return number;
  }
  return std::nullopt;
}

// Bytes per unit; 0 when it is not a unit of memory.
double unit_bytes(std::string_view unit) {
  if (unit == "gib" || unit == "gb" || unit == "g") return kGiB;
  if (unit == "mib" || unit == "mb" || unit == "m") return kMiB;
  if (unit == "kib" || unit == "kb" || unit == "k") return 1024;
  if (unit == "bytes" || unit == "byte" || unit == "b") return 1;
  return 0;
}

double unit_in_name(std::string_view name) {
  if (has_any(name, {"gib", "_gb", "(gb", " gb", "/gb", "[gb"})) return kGiB;
  if (has_any(name, {"mib", "_mb", "(mb", " mb", "/mb", "[mb"})) return kMiB;
  if (has(name, "bytes")) return 1;
  return 0;
}

std::optional<int64_t> bytes_of(const Named& number) {
  double unit = unit_bytes(number.unit);
  if (unit == 0) unit = unit_in_name(number.name);
  if (unit == 0) unit = number.value >= 1e6 ? 1 : number.fraction && number.value < 1000 ? kGiB : kMiB;
  const double bytes = number.value * unit;
  if (!(bytes >= kMiB) || bytes > 1e15) return std::nullopt;  // below 1 MiB: not a job's memory
  return static_cast<int64_t>(bytes);
}

bool is_memory(std::string_view name) {
  return has_any(name, {"mem", "vram", "alloc", "reserv", "cached", "rss"}) &&
         !has_any(name,
                  {"total", "limit", "free", "avail", "capacity", "frac", "util", "budget", "tried", "to alloc", "%"});
}

bool is_step(std::string_view name) {
  while (!name.empty() && !letter(name.back())) name.remove_suffix(1);
  for (const std::string_view word : {"step", "iter", "iteration", "steps", "batch"}) {
    if (name.size() >= word.size() && name.substr(name.size() - word.size()) == word) return true;
  }
  return false;
}

bool is_tokens(std::string_view name) {
  return has_any(name, {"tokens", "seq_len", "seqlen", "seq_length", "max_len", "length"}) &&
         !has_any(name, {"per_s", "/s", "per second", "total", "seen", "throughput", "cumul", "speed"});
}

}  // namespace

std::optional<MemorySample> memory_sample(std::string_view original) {
  std::string lower(original.substr(0, 2048));
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  std::optional<int64_t> allocated, reserved;
  MemorySample sample;
  sample.step = -1;
  size_t at = 0, name_start = 0;
  while (const auto number = next_number(lower, at, name_start)) {
    if (number->value > 1e16) continue;
    if (is_memory(number->name)) {
      const auto bytes = bytes_of(*number);
      if (!bytes) continue;
      auto& target = has_any(number->name, {"reserv", "cached"}) ? reserved : allocated;
      if (!target) target = bytes;
    } else if (sample.step < 0 && is_step(number->name)) {
      sample.step = number->value;
    } else if (!sample.tokens && is_tokens(number->name) && unit_bytes(number->unit) == 0) {
      sample.tokens = number->value;
    }
  }
  if (!allocated && !reserved) return std::nullopt;
  sample.bytes = allocated ? *allocated : *reserved;
  if (allocated && reserved && *reserved >= *allocated) sample.reserved_bytes = reserved;
  return sample;
}

void SampleStore::add(int source, MemorySample sample) {
  if (series_.size() >= kSources && series_.find(source) == series_.end()) return;
  Series& series = series_[source];
  if (sample.step < 0) sample.step = static_cast<double>(series.count);
  sample.after_event = series.event;
  const bool joins = series.count % series.stride != 0 && !series.samples.empty();
  ++series.count;
  series.event = false;
  if (joins) {
    MemorySample& last = series.samples.back();
    const bool event = last.after_event || sample.after_event;
    if (sample.bytes > last.bytes) last = sample;
    last.after_event = event;
    return;
  }
  if (series.samples.size() >= kMost) {
    std::vector<MemorySample> kept;
    kept.reserve(kMost);
    for (size_t i = 0; i + 1 < series.samples.size(); i += 2) {
      const MemorySample &a = series.samples[i], &b = series.samples[i + 1];
      kept.push_back(a.bytes >= b.bytes ? a : b);
      kept.back().after_event = a.after_event || b.after_event;
    }
    series.samples = std::move(kept);
    series.stride *= 2;
  }
  series.samples.push_back(sample);
}

void SampleStore::event() {
  for (auto& [source, series] : series_) series.event = true;
}

std::vector<MemorySample> SampleStore::longest() const {
  const Series* best = nullptr;
  const auto peak = [](const Series& s) {
    int64_t bytes = 0;
    for (const MemorySample& sample : s.samples) bytes = std::max(bytes, sample.bytes);
    return bytes;
  };
  for (const auto& [source, series] : series_) {
    if (best == nullptr || series.count > best->count || (series.count == best->count && peak(series) > peak(*best))) {
      best = &series;
    }
  }
  return best == nullptr ? std::vector<MemorySample>{} : best->samples;
}

}  // namespace headroom::doctor
