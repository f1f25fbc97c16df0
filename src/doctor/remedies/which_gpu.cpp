#include "doctor/remedies/which_gpu.h"

#include <algorithm>

#include "doctor/remedies/balance.h"
#include "doctor/remedies/changes.h"

namespace headroom::doctor {
namespace {

std::string note_of(const Gpu& gpu, const Job& job) {
  const bool half = job.precision.weights == "bfloat16" || job.precision.autocast == "bfloat16";
  if (half && !gpu.bf16) return "no bf16 units: fp16 instead";
  if (job.compute.attention && job.compute.attention->starts_with("flash") && !gpu.flash_attention)
    return "no flash_attention_2: sdpa instead";
  return {};
}

bool holds(const Job& job, const ModelShape& shape, const Estimate& estimate, const Gpu& gpu) {
  const bool share = job.system == System::vllm || job.system == System::sglang;  // fills the share that it is given
  if (!fits(estimate.likely_bytes, gpu.memory_bytes)) return false;
  if (!(share && job.task == Task::serve) && estimate.high_bytes > gpu.memory_bytes) return false;
  if (job.task != Task::serve || !estimate.kv_tokens) return true;
  return *estimate.kv_tokens >= job.serving.max_model_len.value_or(shape.max_positions);
}

}  // namespace

std::vector<GpuChoice> rank_gpus(const Job& job, const ModelShape& shape, const Estimator& estimator) {
  std::vector<GpuChoice> choices;
  for (const Gpu& gpu : known_gpus()) {
    if (gpu.memory_bytes <= 0 || gpu.name == "CPU") continue;
    GpuChoice choice;
    choice.gpu = gpu;
    choice.note = note_of(gpu, job);
    const int64_t least = std::max<int64_t>(1, job.devices.gpus.value_or(1));
    for (int64_t count = least; count <= std::max<int64_t>(8, least); count *= 2) {
      Changes changes;
      if (count > 1 && count != least)
        changes = job.task == Task::serve
                      ? Changes{{"gpus", std::to_string(count)}, {"tensor_parallel", std::to_string(count)}}
                      : Changes{{"gpus", std::to_string(count)}, {"sharding", "zero3"}};
      const Job changed = with_changes(job, changes);
      const Estimate estimate = estimator(changed, shape, gpu);
      choice.count = count;
      choice.need_bytes = estimate.likely_bytes;
      choice.fits = holds(changed, shape, estimate, gpu);
      if (choice.fits) break;
    }
    choices.push_back(std::move(choice));
  }
  std::stable_sort(choices.begin(), choices.end(), [](const GpuChoice& a, const GpuChoice& b) {
    if (a.fits != b.fits) return a.fits;
    if (a.count != b.count) return a.count < b.count;
    return a.gpu.memory_bytes < b.gpu.memory_bytes;
  });
  return choices;
}

}  // namespace headroom::doctor
