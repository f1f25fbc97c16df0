#include "doctor/remedies/changes.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/error.h"

namespace headroom::doctor {
namespace {

int64_t whole(const std::string& name, const std::string& value) {
  int64_t number = 0;
  const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), number);
  HR_CHECK(status == std::errc() && end == value.data() + value.size(), "{} = '{}' is no whole number", name, value);
  return number;
}

struct WholeField {
  std::string_view name;
  std::optional<int64_t> Job::*field;
};
constexpr WholeField kWhole[] = {
    {"gpus", &Job::gpus},
    {"nodes", &Job::nodes},
    {"micro_batch", &Job::micro_batch},
    {"accumulation", &Job::accumulation},
    {"global_batch", &Job::global_batch},
    {"eval_batch", &Job::eval_batch},
    {"sequence", &Job::sequence},
    {"dataloader_workers", &Job::dataloader_workers},
    {"tensor_parallel", &Job::tensor_parallel},
    {"pipeline_parallel", &Job::pipeline_parallel},
    {"context_parallel", &Job::context_parallel},
    {"expert_parallel", &Job::expert_parallel},
    {"max_model_len", &Job::max_model_len},
    {"max_sequences", &Job::max_sequences},
    {"max_batched_tokens", &Job::max_batched_tokens},
    {"kv_cache_bytes", &Job::kv_cache_bytes},
    {"gpu_layers", &Job::gpu_layers},
    {"cpu_offload_bytes", &Job::cpu_offload_bytes},
    {"swap_bytes", &Job::swap_bytes},
};

struct TextField {
  std::string_view name;
  std::optional<std::string> Job::*field;
};
constexpr TextField kText[] = {
    {"weight_dtype", &Job::weight_dtype}, {"autocast", &Job::autocast},
    {"attention", &Job::attention},       {"optimizer", &Job::optimizer},
    {"quantization", &Job::quantization}, {"optimizer_dtype", &Job::optimizer_dtype},
    {"kv_dtype", &Job::kv_dtype},
};

struct FlagField {
  std::string_view name;
  std::optional<bool> Job::*field;
};
constexpr FlagField kFlags[] = {
    {"checkpointing", &Job::checkpointing},
    {"optimizer_in_backward", &Job::optimizer_in_backward},
    {"chunked_loss", &Job::chunked_loss},
    {"compile", &Job::compile},
    {"packing", &Job::packing},
    {"pin_memory", &Job::pin_memory},
    {"activation_offload", &Job::activation_offload},
    {"forward_prefetch", &Job::forward_prefetch},
    {"backward_prefetch", &Job::backward_prefetch},
    {"limit_all_gathers", &Job::limit_all_gathers},
    {"reshard_after_forward", &Job::reshard_after_forward},
    {"flash_loss_upcast", &Job::flash_loss_upcast},
    {"eager", &Job::eager},
};

Sharding sharding_of(const std::string& value) {
  constexpr std::string_view names[] = {"none", "ddp", "zero1", "zero2", "zero3", "hybrid"};
  for (size_t i = 0; i < std::size(names); ++i)
    if (value == names[i]) return static_cast<Sharding>(i);
  HR_CHECK(false, "sharding '{}'", value);
  return Sharding::none;
}

Offload offload_of(const std::string& value) {
  HR_CHECK(value == "none" || value == "cpu" || value == "nvme", "offload '{}'", value);
  return value == "none" ? Offload::none : value == "cpu" ? Offload::cpu : Offload::nvme;
}

bool set_structured(Job& job, const std::string& name, const std::string& value) {
  if (name == "sharding") {
    job.sharding = sharding_of(value);
  } else if (name == "offload_parameters") {
    job.offload_parameters = offload_of(value);
  } else if (name == "offload_optimizer") {
    job.offload_optimizer = offload_of(value);
  } else if (name == "gpu_memory_utilization") {
    job.gpu_memory_utilization = std::strtod(value.c_str(), nullptr);
  } else if (name == "model") {
    job.model = value;
  } else if (name == "checkpointing_kind") {
    job.checkpointing_kind = value;
  } else if (name == "lora" || name == "lora.rank") {
    if (value == "none") {
      job.lora.reset();
      return true;
    }
    if (!job.lora) job.lora.emplace();
    job.lora->rank = whole(name, value);
  } else if (name.starts_with("extras.")) {
    job.extras[name.substr(7)] = value;
  } else if (name.starts_with("buffers.")) {
    job.buffers[name.substr(8)] = whole(name, value);
  } else if (name.starts_with("allocator.")) {
    job.allocator[name.substr(10)] = value;
  } else {
    return false;
  }
  return true;
}

void set_field(Job& job, const std::string& name, const std::string& value) {
  for (const WholeField& known : kWhole)
    if (known.name == name) return void(job.*known.field = whole(name, value));
  for (const TextField& known : kText)
    if (known.name == name) return void(job.*known.field = value);
  for (const FlagField& known : kFlags)
    if (known.name == name) {
      HR_CHECK(value == "true" || value == "false", "{} = '{}' is no truth value", name, value);
      return void(job.*known.field = value == "true");
    }
  HR_CHECK(set_structured(job, name, value), "a job has no field '{}'", name);
}

bool ordered(const std::string& name) { return name == "sharding" || name == "gpus"; }

bool higher(const std::string& name, const std::string& value, const std::string& than) {
  if (name == "sharding") return sharding_of(value) > sharding_of(than);
  return whole(name, value) > whole(name, than);
}

}  // namespace

Job with_changes(Job job, const Changes& changes) {
  for (const auto& [name, value] : changes) set_field(job, name, value);
  return job;
}

bool clash(const Changes& a, const Changes& b) {
  for (const auto& [name, value] : a)
    for (const auto& [other_name, other_value] : b)
      if (name == other_name && value != other_value && !ordered(name)) return true;
  return false;
}

Changes together(Changes a, const Changes& b) {
  for (const auto& [name, value] : b) {
    const auto at = std::find_if(a.begin(), a.end(), [&key = name](const auto& change) { return change.first == key; });
    if (at == a.end())
      a.emplace_back(name, value);
    else if (!ordered(name) || higher(name, value, at->second))
      at->second = value;
  }
  return a;
}

}  // namespace headroom::doctor
