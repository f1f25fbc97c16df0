// Causes from the figures of a device message.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "doctor/remedies/causes.h"
#include "doctor/remedies/figures.h"

namespace headroom::doctor {
namespace {

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// The share of PyTorch's memory that may be unused before fragmentation counts; caches of a few percent are usual.
constexpr double kMuchUnallocated = 0.12;

void fragmentation(const MessageFigures& f, std::vector<Cause>& causes) {
  if (!f.after_defragment || !f.short_by || *f.after_defragment < 0) return;
  const std::string sum = fmt::format("free {} + unallocated {} = {} against {} asked", figure(*f.free),
                                      figure(*f.unallocated), figure(*f.free + *f.unallocated), figure(*f.requested));
  const double held = share(*f.unallocated, f.reserved.value_or(0));
  if (*f.after_defragment >= *f.requested && held > kMuchUnallocated) {
    causes.push_back({"fragmentation",
                      fmt::format("{}: {:.0f} % of what PyTorch holds is in pieces too small", sum, 100 * held),
                      std::min(0.95, 0.7 + held)});
    return;
  }
  causes.push_back({"fragmentation",
                    fmt::format("{}: perfect defragmentation would just serve this request with {} left: worth one "
                                "try, but not a fix",
                                sum, figure(*f.after_defragment)),
                    0.45});
}

// A server fills its device on purpose: the KV cache takes all it may.
void live_tensors(const CaseView& s, const MessageFigures& f, std::vector<Cause>& causes) {
  if (s.serving()) return;
  if (!f.allocated || !f.capacity || *f.capacity <= 0 || *f.allocated > *f.capacity) return;
  const double live = share(*f.allocated, *f.capacity);
  if (live < 0.5) return;
  causes.push_back({"tensors_fill_the_device",
                    fmt::format("{} of {} are live tensors ({:.0f} %): the job wants more than there is",
                                figure(*f.allocated), figure(*f.capacity), 100 * live),
                    live > 0.85 ? 0.65 : 0.55});
}

void larger_than_device(const MessageFigures& f, std::vector<Cause>& causes) {
  if (!f.requested || !f.capacity || *f.requested <= *f.capacity) return;
  causes.push_back({"one_tensor_too_large",
                    fmt::format("one request of {} is larger than the whole device of {}", figure(*f.requested),
                                figure(*f.capacity)),
                    0.97});
}

std::string holders(const Message& message) {
  std::string who;
  for (const OtherProcess& other : message.other_processes)
    who += fmt::format("{}process {} holds {}", who.empty() ? ": " : ", ", other.pid,
                       other.bytes ? figure(*other.bytes) : "an unknown amount");
  return who;
}

void neighbours(const CaseView& s, const MessageFigures& f, std::vector<Cause>& causes) {
  const int64_t foreign = f.foreign.value_or(0);
  if (foreign >= (int64_t{128} << 20)) {
    const bool enough = f.short_by && foreign >= *f.short_by;
    const bool most = f.capacity && share(foreign, *f.capacity) > 0.25;
    causes.push_back({"other_processes",
                      fmt::format("{} of {} are held by other processes on this device{}", figure(foreign),
                                  f.capacity ? figure(*f.capacity) : "the device", holders(*s.message())),
                      most     ? 0.9
                      : enough ? 0.6
                               : 0.3});
  }
  if (!f.reserved && f.process && f.capacity && s.message()->other_processes.size() == 1)
    causes.push_back({"own_process",
                      fmt::format("{} of {} are this process's own: process {} is its number outside of its container, "
                                  "since it holds all that is not free",
                                  figure(*f.process), figure(*f.capacity), s.message()->other_processes.front().pid),
                      0.6});
  const int64_t nobodys = f.unattributed.value_or(0);
  if (nobodys >= (int64_t{128} << 20) && f.capacity)
    causes.push_back({"unattributed",
                      fmt::format("{} of {}, beside a usual context, are unattributed: other processes, NCCL, the "
                                  "driver, or another framework "
                                  "in this process",
                                  figure(nobodys), figure(*f.capacity)),
                      share(nobodys, *f.capacity) > 0.25 ? 0.7 : 0.2});
  const int64_t own = f.own_outside ? *f.own_outside : f.outside_pytorch.value_or(0) - foreign - nobodys;
  if (own >= (int64_t{64} << 20)) {
    const bool much = own > (int64_t{2} << 30);
    causes.push_back({"outside_pytorch",
                      fmt::format("{} are not PyTorch's: CUDA context, libraries, NCCL ({})", figure(own),
                                  much ? "more than usual" : "usual"),
                      much ? 0.5 : 0.05});
  }
}

// Half a unit of the last digit of both figures, added.
int64_t rounding_of(const Message& message) {
  int64_t rounding = 0;
  for (const Figure& figure : message.figures)
    if (figure.field == "requested" || figure.field == "free") rounding += (figure.resolution_bytes + 1) / 2;
  return rounding;
}

// Enough memory is free, but the allocation failed.
void free_but_refused(const CaseView& s, const MessageFigures& f, std::vector<Cause>& causes) {
  constexpr int64_t kSegment = int64_t{64} << 20;  // the allocator asks the driver for at least 2 or 20 MiB
  if (!f.requested || !f.free || *f.requested > *f.free || *f.free < kSegment) return;
  if (*f.free - *f.requested <= rounding_of(*s.message())) {
    causes.push_back({"just_too_little",
                      fmt::format("{} asked, {} free: equal as printed, both are rounded; it was just too little",
                                  figure(*f.requested), figure(*f.free)),
                      0.3});
    return;
  }
  std::string why =
      "a limit below the device's size: a memory fraction, MIG, Windows or WSL, or memory no longer free "
      "when asked";
  if (s.message()->process_limit_bytes)
    why = fmt::format("this process may take {} only", figure(*s.message()->process_limit_bytes));
  causes.push_back({"limit_below_capacity",
                    fmt::format("{} are free and {} were refused: {}", figure(*f.free), figure(*f.requested), why),
                    0.8});
}

// The request has exactly the size of logits or of attention scores.
void known_tensor(const CaseView& s, const MessageFigures& f, std::vector<Cause>& causes) {
  if (!f.requested || !s.shape() || !s.micro_batch() || !s.sequence()) return;
  const double asked = static_cast<double>(*f.requested);
  const double batch = static_cast<double>(*s.micro_batch()), length = static_cast<double>(*s.sequence());
  const double vocab = static_cast<double>(s.shape()->vocab), heads = static_cast<double>(s.shape()->heads);
  const auto near = [&](double bytes) { return bytes > 0 && std::abs(asked - bytes) <= 0.01 * bytes; };
  for (const double width : {2.0, 4.0}) {
    if (near(batch * length * vocab * width))
      causes.push_back({"logits",
                        fmt::format("{} asked = batch {} x length {} x vocabulary {} x {} bytes: the logits",
                                    figure(*f.requested), batch, length, vocab, width),
                        0.92});
    if (near(batch * heads * length * length * width))
      causes.push_back({"attention_scores",
                        fmt::format("{} asked = batch {} x {} heads x {} x {} x {} bytes: attention scores",
                                    figure(*f.requested), batch, heads, length, length, width),
                        0.92});
  }
}

}  // namespace

void device_causes(const CaseView& s, std::vector<Cause>& causes) {
  if (!s.message() || s.pool() != Pool::device) return;
  const MessageFigures& f = s.figures();
  fragmentation(f, causes);
  live_tensors(s, f, causes);
  larger_than_device(f, causes);
  neighbours(s, f, causes);
  free_but_refused(s, f, causes);
  known_tensor(s, f, causes);
}

}  // namespace headroom::doctor
