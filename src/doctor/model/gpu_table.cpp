// Looks GPUs up by the names that people write.
#include <cctype>

#include "doctor/model/estimate.h"
#include "doctor/model/gpu_data.h"

namespace headroom::doctor {
namespace {

constexpr double kMi = 1048576.0;

Gpu gpu_of(const GpuRow& row) {
  Gpu g;
  g.name = row.name;
  g.memory_bytes = static_cast<int64_t>(row.mib * kMi);
  g.compute_capability = row.capability;
  g.bf16 = row.capability >= 80 || row.capability == 0;
  g.flash_attention = row.capability >= 80 || row.capability == 0;
  g.flops_half = row.half_tflops * 1e12;
  g.flops_single = row.single_tflops * 1e12;
  g.bandwidth = row.gb_per_second * 1e9;
  return g;
}

std::string key_of(const std::string& name) {
  std::string key;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)))
      key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* prefix : {"nvidia", "tesla", "geforce", "quadro", "amd", "instinct"})
    if (const std::string_view text(prefix); key.rfind(text, 0) == 0 && key.size() > text.size())
      key.erase(0, text.size());
  return key;
}

// "4090" for "RTX-4090", "1080ti" for "GTX-1080-Ti".
bool same(const std::string& wanted, const std::string& name) {
  const std::string key = key_of(name);
  if (wanted == key) return true;
  return key.size() > 3 && (key.rfind("rtx", 0) == 0 || key.rfind("gtx", 0) == 0) &&
         (wanted == key.substr(3) || wanted == "rtx" + key.substr(3) || wanted == "gtx" + key.substr(3));
}

}  // namespace

const std::vector<Gpu>& known_gpus() {
  static const std::vector<Gpu> table = [] {
    std::vector<Gpu> gpus;
    for (const GpuRow& row : gpu_rows()) gpus.push_back(gpu_of(row));
    return gpus;
  }();
  return table;
}

std::optional<Gpu> find_gpu(const std::string& name) {
  const std::string key = key_of(name);
  if (key.empty()) return std::nullopt;
  for (const Gpu& gpu : known_gpus())
    if (same(key, gpu.name)) return gpu;
  for (const GpuAlias& alias : gpu_aliases())
    if (key == alias.key) return find_gpu(alias.name);
  // A memory size after a name with only one variant: "rtx4090-24gb".
  if (key.size() > 3 && key.compare(key.size() - 2, 2, "gb") == 0) {
    size_t digits = key.size() - 2;
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(key[digits - 1])) && key.size() - 2 - digits < 2)
      --digits;
    if (digits < key.size() - 2 && digits > 0)
      for (const Gpu& gpu : known_gpus())
        if (same(key.substr(0, digits), gpu.name)) return gpu;
  }
  return std::nullopt;
}

}  // namespace headroom::doctor
