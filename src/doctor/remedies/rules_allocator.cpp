// PyTorch's caching allocator, and other processes on the device (T27).
#include <fmt/format.h>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/program_words.h"
#include "doctor/remedies/rules.h"

namespace headroom::doctor {
namespace {

// PYTORCH_CUDA_ALLOC_CONF until torch 2.8; PYTORCH_ALLOC_CONF since 2.9, which still reads the old name.
std::string allocator_variable(const CaseView& s) {
  if (s.message() && s.message()->framework == "pytorch-hip") return "PYTORCH_HIP_ALLOC_CONF";
  if (s.message() && s.message()->text.find("PYTORCH_ALLOC_CONF") != std::string::npos) return "PYTORCH_ALLOC_CONF";
  return "PYTORCH_CUDA_ALLOC_CONF";
}

bool before_torch_2(const CaseView& s) {
  const Version& torch = s.incident().software.torch;
  if (torch.major > 0) return torch.major < 2;
  return s.message() && s.message()->format.starts_with("torch1");
}

bool on_windows(const CaseView& s) { return !windows_word(s.incident().log_text).empty(); }

std::string sum_of(const MessageFigures& f) {
  return fmt::format("free {} + unallocated {} = {} against {} asked", figure(*f.free), figure(*f.unallocated),
                     figure(*f.free + *f.unallocated), figure(*f.requested));
}

// Why the allocator's settings help; empty, with a refusal, when they cannot.
std::string defragmentation(const CaseView& s, std::string_view name, Findings& findings) {
  const MessageFigures& f = s.figures();
  if (!f.after_defragment || !f.unallocated) return {};
  if (f.requested && f.free && *f.requested <= *f.free) return {};
  if (*f.after_defragment < 0) {
    findings.refuse(name, fmt::format("{}: even without any fragmentation {} are missing", sum_of(f),
                                      figure(-*f.after_defragment)));
    return {};
  }
  const char* just = *f.after_defragment < f.requested.value_or(0) ? "just " : "";
  return fmt::format("{}: perfect defragmentation would {}serve this request, {} would be left", sum_of(f), just,
                     figure(*f.after_defragment));
}

Remedy allocator_remedy(const CaseView& s, std::string_view name, const Values& values, std::string why) {
  Remedy remedy = make_remedy(s, name, values, {}, std::move(why));
  remedy.saves_bytes = s.figures().unallocated;
  // A lasting fix leaves room for the next request of this size too.
  const bool cure = *s.figures().after_defragment >= *s.figures().requested;
  remedy.one_try = !cure;
  remedy.caveats.push_back(cure ? "defragmentation is never perfect; it must be set before PyTorch starts"
                                : "worth one try, but not a fix: the next larger request fails again");
  return remedy;
}

void expandable_segments(const CaseView& s, Findings& findings) {
  if (!s.caching_allocator() || !s.message()) return;
  const auto& set = s.job().environment.allocator;
  if (set.count("expandable_segments") && set.at("expandable_segments") != "False")
    return findings.refuse("expandable-segments", "they are on already");
  const std::string why = defragmentation(s, "expandable-segments", findings);
  if (why.empty()) return;
  if (on_windows(s)) return findings.refuse("expandable-segments", "PyTorch has no expandable segments on Windows");
  if (before_torch_2(s))
    return findings.refuse("expandable-segments",
                           "the message is of a PyTorch before 2.0: it has no expandable segments");
  Remedy remedy = allocator_remedy(s, "expandable-segments", {{"allocator", allocator_variable(s)}}, why);
  if (allocator_variable(s) == "PYTORCH_CUDA_ALLOC_CONF")
    remedy.caveats.push_back("torch 2.9 and later call the variable PYTORCH_ALLOC_CONF and read the old name too");
  if (set.count("max_split_size_mb")) remedy.caveats.push_back("drop max_split_size_mb: the two do not go together");
  findings.offer(std::move(remedy));
}

void max_split_size(const CaseView& s, Findings& findings) {
  if (!s.caching_allocator() || !s.message()) return;
  if (!before_torch_2(s) && !on_windows(s)) {
    if (s.message()->text.find("max_split_size_mb") != std::string::npos && s.figures().after_defragment &&
        *s.figures().after_defragment >= 0)
      findings.refuse("max-split-size",
                      "the message names it; expandable_segments does the same better since torch 2.1, not both");
    return;
  }
  if (s.job().environment.allocator.count("max_split_size_mb"))
    return findings.refuse("max-split-size", "it is set already");
  const std::string why = defragmentation(s, "max-split-size", findings);
  if (why.empty()) return;
  // PyTorch's messages name the setting since PyTorch has it; these formats are older.
  if (s.message()->format == "torch1_cached" || s.message()->format == "torch1_reserved")
    return findings.refuse("max-split-size", "a PyTorch before 1.10, by the message: it has no such setting");
  findings.offer(allocator_remedy(s, "max-split-size", {{"allocator", allocator_variable(s)}, {"mb", "128"}}, why));
}

void empty_cache(const CaseView& s, Findings& findings) {
  if (!s.caching_allocator() || s.serving()) return;
  const MessageFigures& f = s.figures();
  const bool fragmented = f.after_defragment && *f.after_defragment >= 0 && f.short_by;
  const bool shared = f.foreign.value_or(0) > 0;
  if (!fragmented && !shared) return findings.refuse("empty-cache", std::string(kNoGainAtThePeak));
  Remedy remedy =
      make_remedy(s, "empty-cache", {{"steps", "50"}}, {},
                  shared ? "gives unused blocks to the other processes" : "lets whole segments start afresh");
  remedy.caveats.push_back("about 10 % slower when done every step; helps fragmentation, never the peak");
  findings.offer(std::move(remedy));
}

// The tool that lists a device's processes: for AMD, Huawei, Intel, else NVIDIA.
std::string_view process_list(std::string_view framework) {
  return framework == "pytorch-hip"   ? "rocm-smi --showpids"
         : framework == "pytorch-npu" ? "npu-smi info"
         : framework == "pytorch-xpu" ? "xpu-smi ps"
                                      : "nvidia-smi";
}

// Unattributed bytes may be anyone's: worth a look only when they are large.
bool worth_a_look(const MessageFigures& f) { return f.unattributed && f.capacity && *f.unattributed > *f.capacity / 4; }

void other_processes(const CaseView& s, Findings& findings) {
  const int64_t foreign = s.figures().foreign.value_or(0);
  if (s.pool() != Pool::device || (foreign < (int64_t{256} << 20) && !worth_a_look(s.figures()))) return;
  if (!s.reinforcement_library().empty())
    return findings.refuse("end-other-processes", "what else is on the device may be the job's own server");
  const std::string_view list = process_list(s.message()->framework);
  std::string kill = fmt::format("{}; end what is not needed, or take another GPU: CUDA_VISIBLE_DEVICES=1", list);
  std::string pids;
  for (const OtherProcess& other : s.message()->other_processes)
    if (other.pid > 0 && other.bytes != s.figures().process)
      pids += fmt::format("{}{}", pids.empty() ? "" : " ", other.pid);
  // A server runs the model in several processes: a listed one may be its own.
  if (!pids.empty() && !s.serving()) kill = fmt::format("{}; if yours and not needed: kill {}", list, pids);
  Remedy remedy = make_remedy(s, "end-other-processes", {{"kill", kill}}, {},
                              foreign > 0 ? fmt::format("other processes hold {} of this device", figure(foreign))
                                          : "much of the device is held by nobody that the message names");
  if (foreign > 0) remedy.saves_bytes = foreign;
  // It serves the failed request at most: the next one, and the owner of the bytes, are unknown.
  const bool enough = s.incident().estimate && s.balance().need && s.figures().capacity
                          ? fits(*s.balance().need, *s.figures().capacity)
                          : s.figures().short_by && *s.figures().short_by <= foreign;
  remedy.likely_alone = foreign > 0 && enough;
  remedy.caveats.push_back("look whose they are first: an earlier run of yours that hangs, a notebook, a colleague");
  findings.offer(std::move(remedy));
}

constexpr Rule kRules[] = {expandable_segments, max_split_size, empty_cache, other_processes};

}  // namespace

std::span<const Rule> allocator_rules() { return kRules; }

}  // namespace headroom::doctor
