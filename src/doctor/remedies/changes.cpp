#include "doctor/remedies/changes.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/error.h"
#include "doctor/config/job_fields.h"

namespace headroom::doctor {
namespace {

int64_t whole(const std::string& name, const std::string& value) {
  int64_t number = 0;
  const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), number);
  HR_CHECK(status == std::errc() && end == value.data() + value.size(), "{} = '{}' is not a whole number", name, value);
  return number;
}

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
    job.parallel.sharding = sharding_of(value);
  } else if (name == "offload_parameters") {
    job.parallel.offload_parameters = offload_of(value);
  } else if (name == "offload_optimizer") {
    job.parallel.offload_optimizer = offload_of(value);
  } else if (name == "gpu_memory_utilization") {
    job.serving.gpu_memory_utilization = std::strtod(value.c_str(), nullptr);
  } else if (name == "model") {
    job.model = value;
  } else if (name == "checkpointing_kind") {
    job.compute.checkpointing_kind = value;
  } else if (name == "lora" || name == "lora.rank") {
    if (value == "none") {
      job.lora.reset();
      return true;
    }
    if (!job.lora) job.lora.emplace();
    job.lora->rank = whole(name, value);
  } else if (name.starts_with("extras.")) {
    set_extra_field(job, name.substr(7), value);
  } else if (name.starts_with("buffers.")) {
    job.parallel.buffers[name.substr(8)] = whole(name, value);
  } else if (name.starts_with("allocator.")) {
    job.environment.allocator[name.substr(10)] = value;
  } else {
    return false;
  }
  return true;
}

void set_field(Job& job, const std::string& name, const std::string& value) {
  if (auto* number = whole_field(job, name)) return void(*number = whole(name, value));
  if (auto* text = text_field(job, name)) return void(*text = value);
  if (auto* flag = truth_field(job, name)) {
    HR_CHECK(value == "true" || value == "false", "{} = '{}' is not a truth value", name, value);
    return void(*flag = value == "true");
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
