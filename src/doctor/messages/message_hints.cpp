#include "doctor/messages/message_hints.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace headroom::doctor {

void add_hints(Message& m) {
  const auto hint = [&](const char* name) {
    if (!m.hinted(name)) m.hints.emplace_back(name);
  };
  constexpr int64_t kGiB = int64_t{1} << 30;
  const bool device = m.framework.rfind("pytorch-", 0) == 0 && m.framework != "pytorch-cpu";
  if (m.requested_bytes && m.reserved_unallocated_bytes && *m.reserved_unallocated_bytes >= *m.requested_bytes) {
    hint("fragmentation");
  }
  if (device && m.requested_bytes && m.free_bytes && *m.free_bytes >= *m.requested_bytes) hint("free_covers_request");
  if (m.requested_bytes && m.capacity_bytes && *m.requested_bytes > *m.capacity_bytes) hint("requested_above_capacity");
  if (device && m.capacity_bytes && m.free_bytes && m.reserved_bytes &&
      *m.capacity_bytes - *m.free_bytes - *m.reserved_bytes >= kGiB) {
    hint("outside_memory");
  }
  if (!m.other_processes.empty()) hint("other_processes");
  const bool any = m.requested_bytes || m.capacity_bytes || m.allocated_bytes || m.reserved_bytes || m.free_bytes ||
                   m.process_bytes || m.kv_tokens_wanted || m.kv_bytes_wanted;
  if (!any) hint("no_numbers");
}

bool same_message(const Message& a, const Message& b) {
  const auto figures = [](const Message& m) {
    return std::tie(m.requested_bytes, m.framework, m.format, m.capacity_bytes, m.allocated_bytes, m.reserved_bytes,
                    m.reserved_unallocated_bytes, m.free_bytes, m.process_bytes, m.process_limit_bytes, m.device_index,
                    m.kv_tokens_wanted, m.kv_tokens_available, m.phase);
  };
  return figures(a) == figures(b);
}

bool only_requests(const Message& m) {
  const bool more = m.capacity_bytes || m.allocated_bytes || m.reserved_bytes || m.reserved_unallocated_bytes ||
                    m.free_bytes || m.process_bytes || m.process_limit_bytes || !m.other_processes.empty();
  return m.requested_bytes && !more;
}

bool one_is_fuller(const Message& a, const Message& b) {
  return a.requested_bytes && a.requested_bytes == b.requested_bytes && a.framework == b.framework &&
         a.rank == b.rank && only_requests(a) != only_requests(b);
}

bool is_bare_title(const Message& title, const Message& message) {
  return title.line == 1 && title.format == "torch_no_numbers" && title.frames.empty() && message.requested_bytes &&
         title.framework == message.framework && title.rank == message.rank;
}

void take_shorter(Message& fuller, Message& shorter) {
  fuller.repeats += shorter.repeats;
  if (fuller.frames.empty()) fuller.frames = std::move(shorter.frames);
  if (fuller.phase != "unknown") return;
  fuller.phase = std::move(shorter.phase);
  fuller.phase_evidence = std::move(shorter.phase_evidence);
}

bool continues(Message& known, const Message& next) {
  if (known.framework != next.framework || known.rank != next.rank) return false;
  const int64_t distance = next.line - known.line;
  if (next.framework != "linux-oom") {
    return distance <= 40 && next.hinted("no_numbers");
  }
  if (distance > 600 || (known.process_bytes && next.process_bytes) || (known.capacity_bytes && next.capacity_bytes)) {
    return false;
  }
  if (next.process_bytes) {
    known.text = next.text;
    known.format = next.format;
    known.pid = next.pid;
  }
  if (!known.pid) known.pid = next.pid;
  if (!known.process_bytes) known.process_bytes = next.process_bytes;
  if (!known.capacity_bytes) known.capacity_bytes = next.capacity_bytes;
  known.figures.insert(known.figures.end(), next.figures.begin(), next.figures.end());
  if (known.process_bytes || known.capacity_bytes) {
    known.hints.erase(std::remove(known.hints.begin(), known.hints.end(), "no_numbers"), known.hints.end());
  }
  return true;
}

}  // namespace headroom::doctor
