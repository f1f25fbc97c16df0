#include "doctor/config/environment.h"

#include "doctor/config/dialects.h"

namespace headroom::doctor {
namespace {

// "expandable_segments:True,max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2]"
void read_allocator(const std::string& value, Draft& draft) {
  std::string item;
  int depth = 0;
  const auto take = [&] {
    const size_t colon = item.find(':');
    if (colon != std::string::npos) draft.job.environment.allocator[item.substr(0, colon)] = item.substr(colon + 1);
    item.clear();
  };
  for (const char c : value) {
    depth += c == '[';
    depth -= c == ']';
    if (c == ',' && depth == 0) {
      take();
    } else if (c != ' ') {
      item += c;
    }
  }
  take();
}

void take_number(const Origin& origin, const std::string& value, std::optional<int64_t>& field, const std::string& name,
                 Draft& draft) {
  const std::optional<int64_t> count = whole_number(value);
  if (count && *count >= 1 && *count <= 1'000'000) draft.imply(field, *count, name, origin);
}

bool read_known(const Origin& origin, const std::string& name, const std::string& value, Draft& draft) {
  Job& job = draft.job;
  if (name == "PYTORCH_CUDA_ALLOC_CONF" || name == "PYTORCH_ALLOC_CONF" || name == "PYTORCH_HIP_ALLOC_CONF") {
    read_allocator(value, draft);
    job.keys.origins["allocator"] = origin;
    if (name != "PYTORCH_ALLOC_CONF")
      draft.correct(origin, "PYTORCH_ALLOC_CONF: PyTorch 2.9; the old name still works as an alias", value);
    return true;
  }
  if (name == "CUDA_VISIBLE_DEVICES" || name == "HIP_VISIBLE_DEVICES" || name == "ROCR_VISIBLE_DEVICES") {
    const size_t count = split_words(value, ",").size();
    if (count > 0 && value.find('$') == std::string::npos)
      draft.imply(job.devices.gpus, static_cast<int64_t>(count), "gpus", origin);
    return true;
  }
  if (name == "NPROC_PER_NODE" || name == "WORLD_SIZE") {
    take_number(origin, value, job.devices.gpus, "gpus", draft);
    return true;
  }
  if (name == "NNODES") {
    take_number(origin, value, job.devices.nodes, "nodes", draft);
    return true;
  }
  if (name == "VLLM_CPU_KVCACHE_SPACE" || name == "PYTORCH_MPS_HIGH_WATERMARK_RATIO" ||
      name == "XLA_PYTHON_CLIENT_MEM_FRACTION" || name == "XLA_PYTHON_CLIENT_PREALLOCATE" ||
      name == "CUBLAS_WORKSPACE_CONFIG" || name == "PYTORCH_NO_CUDA_MEMORY_CACHING" || name == "CUDA_MODULE_LOADING" ||
      name == "NCCL_BUFFSIZE" || name == "VLLM_USE_V1" || name == "FORCE_TORCHRUN") {
    draft.set_extra("environment." + name, value, origin);
    return true;
  }
  return false;
}

}  // namespace

void apply_environment(const Origin& origin, const std::string& name, const std::string& value, Draft& draft) {
  draft.job.environment.variables[name] = value;
  if (name.starts_with("LLAMA_ARG_") && draft.job.system == System::llama_server) {
    Setting setting;
    setting.path = lower(name.substr(10));
    setting.origin = origin;
    setting.text = value;
    setting.items = {value};
    return apply_setting(llama_server_dialect(), setting, draft);
  }
  if (read_known(origin, name, value, draft)) {
    draft.job.keys.understood.push_back({origin, "a variable of the environment", value.substr(0, 200)});
  } else {
    draft.job.keys.irrelevant.push_back(
        {origin, "a variable of the environment without a known bearing on memory", value.substr(0, 200)});
  }
}

}  // namespace headroom::doctor
