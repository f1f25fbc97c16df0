// Causes from a message's phase, and from messages about hosts and of servers.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/remedies/causes.h"
#include "doctor/remedies/figures.h"
#include "doctor/remedies/kv_direction.h"

namespace headroom::doctor {
namespace {

struct PhaseCause {
  std::string_view phase, cause, text;
};
constexpr PhaseCause kPhases[] = {
    {"optimizer_step", "optimizer_step", "the states are made at the first step, after one pass went well"},
    {"optimizer_init", "optimizer_step", "the states are made here: 8 bytes per trained weight with AdamW"},
    {"eval", "evaluation", "evaluation has its own batch, whole logits, and keeps predictions"},
    {"inference", "inference", "predicting needs no gradients, and rows go through one batch at a time"},
    {"checkpoint_save", "save", "saving gathered the model on one process"},
    {"load", "load", "weights were being loaded: nothing of the batch matters yet"},
    {"backward", "batch_too_large", "gradients and recomputed activations come on top of what the forward pass kept"},
    {"forward", "batch_too_large", "activations grow with batch and length"},
    {"compute_buffer", "compute_buffer", "it grows with --ubatch-size and, without --flash-attn on, with the context"},
    {"cudagraph_capture", "graph_capture", "graphs keep their own pools beside the KV cache"},
    {"comm_init", "outside_pytorch", "NCCL's buffers come after PyTorch took its share"},
};

void phase(const CaseView& s, std::vector<Cause>& causes) {
  const Message& message = *s.message();
  // Of a load that nobody configured a situation tells the same.
  if (message.phase == "load" && !s.serving() && !s.has_job()) return;
  for (const PhaseCause& known : kPhases) {
    if (message.phase != known.phase ||
        (s.serving() && known.phase != "cudagraph_capture" && known.phase != "compute_buffer" && known.phase != "load"))
      continue;
    const std::string where =
        message.phase_evidence.empty() ? std::string() : fmt::format(" ({})", message.phase_evidence);
    const bool specific = known.phase != "forward" && known.phase != "backward";
    causes.push_back(
        {std::string(known.cause), fmt::format("in {}{}: {}", message.phase, where, known.text), specific ? 0.7 : 0.5});
  }
}

void data_parallel(const CaseView& s, std::vector<Cause>& causes) {
  for (const Frame& frame : s.message()->frames)
    if (frame.file.find("parallel/data_parallel") != std::string::npos)
      return causes.push_back(
          {"data_parallel", "nn.DataParallel gathers the outputs and sums the gradients of all GPUs on the first one",
           0.86});
}

void host(const CaseView& s, std::vector<Cause>& causes) {
  const Message& message = *s.message();
  if (s.pool() == Pool::shared_memory)
    causes.push_back({"shared_memory",
                      message.framework == "nccl" ? "/dev/shm is full: NCCL's processes pass their data through it"
                      : !s.log_says("unable to open shared memory object").empty()
                          ? "a worker's piece of shared memory could not be opened: too many open files, or /dev/shm "
                            "is full"
                          : "/dev/shm is full: data-loader workers pass batches through it",
                      0.9});
  if (s.pool() != Pool::host) return;
  const bool grows = message.hinted("grows"), asks = message.hinted("asks");
  std::string evidence = fmt::format("host memory {}, not the device{}; no GPU figure matters here",
                                     grows  ? "grows"
                                     : asks ? "is in question"
                                            : "ran out",
                                     grows || asks ? "'s" : "");
  if (message.requested_bytes && message.framework.starts_with("pytorch"))
    evidence = fmt::format("{} of host memory were refused", figure(*message.requested_bytes));
  else if (message.process_bytes && message.capacity_bytes)
    evidence = fmt::format("the process held {} under a limit of {}", figure(*message.process_bytes),
                           figure(*message.capacity_bytes));
  else if (message.process_bytes)
    evidence = fmt::format("the process held {} when it was ended", figure(*message.process_bytes));
  const JobResources& job = s.incident().resources.job;
  if (job.memory_requested_bytes && job.memory_used_bytes)
    evidence += fmt::format("; Slurm: {} used of {} asked for", figure(*job.memory_used_bytes),
                            figure(*job.memory_requested_bytes));
  causes.push_back({"host_memory", evidence, 0.85});
}

void server(const CaseView& s, std::vector<Cause>& causes) {
  const KvAdvice advice = kv_advice(s);
  const Message& message = *s.message();
  if (message.text.find("--max-running-requests") != std::string::npos)
    return causes.push_back({"too_many_requests", "more requests at once than there are slots for", 0.8});
  if (message.text.find("--max-batch-") != std::string::npos)
    return causes.push_back({"prefill_too_large", "the warm-up's prefill found no room", 0.8});
  if (advice.direction == KvDirection::raise) {
    std::string evidence = advice.why;
    if (message.kv_bytes_wanted && message.kv_bytes_available)
      evidence = fmt::format("{} of KV cache wanted, {} there", figure(*message.kv_bytes_wanted),
                             figure(*message.kv_bytes_available));
    else if (message.kv_tokens_wanted && message.kv_tokens_available)
      evidence = fmt::format("{} tokens of KV cache wanted, room for {}", *message.kv_tokens_wanted,
                             *message.kv_tokens_available);
    causes.push_back({"kv_cache_too_small", evidence, 0.9});
  } else if (advice.direction == KvDirection::lower && message.phase != "cudagraph_capture") {
    causes.push_back({"server_workspace", advice.why, 0.6});
  }
}

}  // namespace

void phase_causes(const CaseView& s, std::vector<Cause>& causes) {
  if (!s.message()) return;
  if (s.pool() == Pool::device) phase(s, causes);
  if (s.pool() == Pool::device) data_parallel(s, causes);
  host(s, causes);
  if (s.serving() && s.pool() == Pool::device) server(s, causes);
}

}  // namespace headroom::doctor
