#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "doctor/snapshot/clean_text.h"
#include "doctor/snapshot/snapshot_output.h"

namespace headroom::doctor {
namespace {

constexpr size_t kWidth = 80, kMostLines = 20;

size_t characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// Cuts a text to `width` characters.
std::string fitted(const std::string& text, size_t width) {
  if (characters(text) <= width) return text;
  size_t at = 0;
  for (size_t count = 0; at < text.size(); ++at)
    if ((static_cast<unsigned char>(text[at]) & 0xc0) != 0x80 && ++count > width - 3) break;
  return text.substr(0, at) + "...";
}

std::string time_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.0f} ms", 1e3 * seconds) : fmt::format("{:.1f} s", seconds);
}

std::string when(double seconds, int64_t event) {
  if (event < 0) return "before the first event";
  return seconds > 0 ? fmt::format("at {} (event {})", time_text(seconds), event) : fmt::format("at event {}", event);
}

std::string share(int64_t part, int64_t whole) {
  return whole > 0 ? fmt::format("{:3.0f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole)) : "";
}

std::string class_line(MemoryClass kind, int64_t bytes, int64_t whole) {
  return fmt::format("  {:<26}{:>10} {}", memory_class_title(kind), format_bytes(bytes), share(bytes, whole));
}

std::string holder_line(const MemoryHolder& holder) {
  return fmt::format("  {:>10} in {:<5} {} [{}]", format_bytes(holder.bytes), holder.count, fitted(holder.place, 44),
                     memory_class_title(holder.kind));
}

// Classes that hold memory, largest first.
std::vector<std::pair<int64_t, MemoryClass>> by_size(const MemoryInstant& instant) {
  std::vector<std::pair<int64_t, MemoryClass>> out;
  for (size_t i = 0; i < kMemoryClasses; ++i)
    if (instant.by_class[i] > 0) out.emplace_back(instant.by_class[i], static_cast<MemoryClass>(i));
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  return out;
}

std::string failure_line(const DeviceAnalysis& device) {
  const OutOfMemoryEvent& last = device.failures.back();
  std::string out = fmt::format("out of memory {}: asked for {}, device free {}", when(last.seconds, last.event),
                                format_bytes(last.requested_bytes), format_bytes(last.device_free_bytes));
  if (device.failure_count > 1) out += fmt::format(" (the last of {})", device.failure_count);
  return out;
}

// The line about fragmentation.
std::string fragment_line(const DeviceAnalysis& device) {
  const Fragmentation& f = device.failure_fragmentation ? *device.failure_fragmentation : device.end_fragmentation;
  if (f.inactive_bytes == 0) return "no reserved byte was unused";
  std::string out = fmt::format("unused but held: {} in {} blocks, largest {}", format_bytes(f.inactive_bytes),
                                f.inactive_blocks, format_bytes(f.largest_inactive));
  if (!device.failures.empty()) return out;
  if (f.private_pool_bytes > 0) return out + fmt::format(", {} in private pools", format_bytes(f.private_pool_bytes));
  return out + fmt::format(", {} releasable", format_bytes(f.releasable_bytes));
}

std::string cure_line(const DeviceAnalysis& device) {
  const Fragmentation& f = *device.failure_fragmentation;
  const int64_t have = f.unusable_bytes + device.failures.back().device_free_bytes;
  const int64_t asked = device.failures.back().requested_bytes;
  if (have < asked)
    return fmt::format("without any fragment {} would still have been missing", format_bytes(asked - have));
  return fmt::format("without fragments {} would have been left{}", format_bytes(have - asked),
                     f.expandable_bytes > 0 ? "" : ": try expandable_segments:True");
}

std::string growth_line(const AliveGrowth& growth) {
  if (!growth.grows) return fmt::format("what stays alive does not grow over {} x {}", growth.lows.size(), growth.unit);
  const std::string what = growth.holders.empty() ? std::string() : ": " + growth.holders.front().place;
  return fmt::format("grows by {} per {}{}", format_bytes(growth.bytes_per_unit), growth.unit, what);
}

class SnapshotText {
 public:
  SnapshotText(const SnapshotAnalysis& analysis, bool verbose) : analysis_(analysis), verbose_(verbose) {}

  std::string text() {
    if (analysis_.devices.empty()) {
      add(fmt::format("memory snapshot {}: no device has memory in it", clean_text(analysis_.source)));
    } else {
      device(main_device());
      if (verbose_)
        for (const DeviceAnalysis& other : analysis_.devices)
          if (&other != &main_device()) add(""), device(other);
    }
    notes();
    if (!verbose_ && lines_.size() > kMostLines) lines_.resize(kMostLines);
    std::string out;
    for (const std::string& line : lines_) out += fitted(line, verbose_ ? 200 : kWidth) + "\n";
    return out;
  }

 private:
  void add(std::string line) { lines_.push_back(std::move(line)); }

  void add_wrapped(std::string_view text) {
    while (text.size() > kWidth) {
      const size_t space = std::min(text.rfind(' ', kWidth), kWidth);
      add(std::string(text.substr(0, space)));
      text.remove_prefix(std::min(text.size(), space + 1));
    }
    add(std::string(text));
  }

  // The device that failed last, else the one with the highest peak.
  const DeviceAnalysis& main_device() const {
    const auto rank = [](const DeviceAnalysis& d) {
      const bool failed = d.failure.has_value();
      return std::make_pair(failed ? d.failure->time_us + 1 : 0,
                            failed ? 1 + d.peak.allocated_bytes : d.peak.allocated_bytes);
    };
    return *std::max_element(analysis_.devices.begin(), analysis_.devices.end(),
                             [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  }

  void device(const DeviceAnalysis& d) {
    std::string head = fmt::format("memory snapshot {}: device {}", clean_text(analysis_.source), d.device);
    if (analysis_.devices.size() > 1) head += fmt::format(" of {}", analysis_.devices.size());
    if (d.events > 0) head += fmt::format(", {} events", d.events);
    if (d.seconds > 0) head += " in " + time_text(d.seconds);
    add(head);
    const std::string at = d.events > 0 ? " " + when(d.peak.seconds, d.peak.event) : std::string();
    add(fmt::format("{} {} in tensors{}, {} reserved", d.events > 0 ? "peak" : "now",
                    format_bytes(d.peak.allocated_bytes), at, format_bytes(d.peak.reserved_bytes)));
    if (!d.failures.empty()) add(failure_line(d));
    add(fragment_line(d));
    if (d.failure_fragmentation) add(cure_line(d));
    chart(d);
    tables(d.failure ? *d.failure : d.peak, d);
    if (!d.growth.lows.empty()) add(growth_line(d.growth));
    if (verbose_) details(d);
  }

  void chart(const DeviceAnalysis& d) {
    const std::string drawn = draw_text_timeline(d, 72, verbose_ ? 8 : 4);
    for (size_t at = 0; at < drawn.size();) {
      const size_t end = drawn.find('\n', at);
      add(drawn.substr(at, end - at));
      at = end + 1;
    }
  }

  void tables(const MemoryInstant& instant, const DeviceAnalysis& d) {
    add(d.failure ? "held when it failed:" : d.events > 0 ? "held at the peak:" : "held:");
    size_t shown = 0;
    for (const auto& [bytes, kind] : by_size(instant)) {
      if (!verbose_ && shown++ == 3) break;
      add(class_line(kind, bytes, instant.allocated_bytes));
    }
    size_t places = 0;
    for (const MemoryHolder& holder : instant.holders) {
      if (!verbose_ && places++ == 3) break;
      add(holder_line(holder));
    }
  }

  void details(const DeviceAnalysis& d) {
    const MemoryInstant& instant = d.failure ? *d.failure : d.peak;
    add("by whole stack:");
    for (const MemoryHolder& holder : instant.stack_holders) {
      add(fmt::format("  {:>10} in {:<5} {}", format_bytes(holder.bytes), holder.count,
                      memory_class_title(holder.kind)));
      for (const std::string& frame : holder.stack) add("      " + frame);
    }
    const Fragmentation& f = d.end_fragmentation;
    add(fmt::format("at the end: reserved {}, allocated {} ({} of it rounding), inactive {}, releasable {}",
                    format_bytes(f.reserved_bytes), format_bytes(f.allocated_bytes), format_bytes(f.rounding_bytes),
                    format_bytes(f.inactive_bytes), format_bytes(f.releasable_bytes)));
    add(fmt::format("  private pools {}, expandable segments {}, awaiting another stream {}, other streams' {}",
                    format_bytes(f.private_pool_bytes), format_bytes(f.expandable_bytes),
                    format_bytes(f.pending_free_bytes), format_bytes(f.other_stream_bytes)));
    for (const MemoryHolder& holder : d.growth.holders) add("  kept: " + holder_line(holder).substr(2));
  }

  void notes() {
    if (verbose_ && !analysis_.settings.text.empty()) add("PYTORCH_CUDA_ALLOC_CONF=" + analysis_.settings.text);
    if (verbose_ && analysis_.pinned_host_bytes > 0)
      add(fmt::format("pinned host memory: {}", format_bytes(analysis_.pinned_host_bytes)));
    for (const std::string& note : analysis_.notes) add_wrapped("note: " + note);
  }

  const SnapshotAnalysis& analysis_;
  bool verbose_;
  std::vector<std::string> lines_;
};

}  // namespace

std::string snapshot_text(const SnapshotAnalysis& analysis, bool verbose) {
  return SnapshotText(analysis, verbose).text();
}

}  // namespace headroom::doctor
