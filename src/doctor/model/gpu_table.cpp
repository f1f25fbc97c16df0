// GPUs by the names people write.
#include <array>
#include <cctype>

#include "doctor/model/estimate.h"

namespace headroom::doctor {
namespace {

constexpr double kMi = 1048576.0;

// `mib` is what cudaMemGetInfo reports as total (a little less than the marketing figure); 0 for the CPU.
Gpu gpu(const char* name, int mib, int capability, double half_tflops, double single_tflops, double gb_per_second) {
  Gpu g;
  g.name = name;
  g.memory_bytes = static_cast<int64_t>(mib * kMi);
  g.compute_capability = capability;
  g.bf16 = capability >= 80 || capability == 0;
  g.flash_attention = capability >= 80 || capability == 0;
  g.flops_half = half_tflops * 1e12;
  g.flops_single = single_tflops * 1e12;
  g.bandwidth = gb_per_second * 1e9;
  return g;
}

// Sources: vendors' data sheets (dense tensor throughput with float32 accumulation); totals as drivers report them.
std::vector<Gpu> make_table() {
  return {
      gpu("GTX-1080", 8114, 61, 8.9, 8.9, 320),
      gpu("GTX-1080-Ti", 11172, 61, 11.3, 11.3, 484),
      gpu("P100-16GB", 16276, 60, 18.7, 9.3, 732),
      gpu("V100-16GB", 16151, 70, 112, 14, 900),
      gpu("V100-32GB", 32501, 70, 112, 14, 900),
      gpu("TITAN-RTX", 24217, 75, 65, 16.3, 672),
      gpu("T4", 15102, 75, 65, 8.1, 320),
      gpu("RTX-2060", 5935, 75, 26, 6.5, 336),
      gpu("RTX-2070", 7982, 75, 30, 7.5, 448),
      gpu("RTX-2080", 7982, 75, 40, 10, 448),
      gpu("RTX-2080-Ti", 11019, 75, 54, 13.4, 616),
      gpu("RTX-3050", 8192, 86, 18, 9.1, 224),
      gpu("RTX-3060", 12045, 86, 25, 12.7, 360),
      gpu("RTX-3060-Ti", 7974, 86, 32, 16.2, 448),
      gpu("RTX-3070", 7974, 86, 41, 20.3, 448),
      gpu("RTX-3080", 10014, 86, 60, 29.8, 760),
      gpu("RTX-3080-Ti", 12045, 86, 68, 34.1, 912),
      gpu("RTX-3090", 24260, 86, 71, 35.6, 936),
      gpu("RTX-3090-Ti", 24247, 86, 80, 40, 1008),
      gpu("RTX-4060", 7940, 89, 60, 15.1, 272),
      gpu("RTX-4060-Ti-16GB", 16072, 89, 88, 22.1, 288),
      gpu("RTX-4070", 11994, 89, 58, 29.1, 504),
      gpu("RTX-4070-Ti", 11994, 89, 80, 40.1, 504),
      gpu("RTX-4070-Ti-SUPER", 16072, 89, 88, 44.1, 672),
      gpu("RTX-4080", 16072, 89, 98, 48.7, 717),
      gpu("RTX-4090", 24210, 89, 165, 82.6, 1008),
      gpu("RTX-5060-Ti-16GB", 16079, 120, 95, 23.7, 448),
      gpu("RTX-5070", 11900, 120, 62, 30.9, 672),
      gpu("RTX-5070-Ti", 16079, 120, 88, 44, 896),
      gpu("RTX-5080", 16079, 120, 113, 56.3, 960),
      gpu("RTX-5090", 32110, 120, 210, 104.8, 1792),
      gpu("A10", 22723, 86, 125, 31.2, 600),
      gpu("A10G", 22723, 86, 70, 31.5, 600),
      gpu("A16", 14926, 86, 36, 4.5, 200),
      gpu("A30", 24062, 80, 165, 10.3, 933),
      gpu("A40", 45416, 86, 150, 37.4, 696),
      gpu("A100-40GB", 40339, 80, 312, 19.5, 1555),
      gpu("A100-80GB", 81051, 80, 312, 19.5, 2039),
      gpu("RTX-A4000", 16101, 86, 77, 19.2, 448),
      gpu("RTX-A5000", 24247, 86, 111, 27.8, 768),
      gpu("RTX-A6000", 48541, 86, 155, 38.7, 768),
      gpu("RTX-6000-Ada", 48519, 89, 364, 91.1, 960),
      gpu("L4", 22491, 89, 121, 30.3, 300),
      gpu("L40", 45458, 89, 181, 90.5, 864),
      gpu("L40S", 45458, 89, 362, 91.6, 864),
      gpu("H100-80GB", 81105, 90, 989, 67, 3350),
      gpu("H100-PCIe", 81008, 90, 756, 51, 2000),
      gpu("H100-NVL", 95830, 90, 835, 60, 3938),
      gpu("H200", 143167, 90, 989, 67, 4800),
      gpu("GH200-96GB", 97280, 90, 989, 67, 4000),
      gpu("B200", 183359, 100, 2250, 80, 8000),
      gpu("MI210", 65520, 0, 181, 22.6, 1638),
      gpu("MI250X", 65520, 0, 191, 23.9, 1638),  // one of its two dies, which is one device
      gpu("MI250", 65520, 0, 181, 22.6, 1638),
      gpu("MI300X", 196592, 0, 1307, 163, 5300),
      gpu("CPU", 0, 0, 0, 0, 0),
  };
}

// Other spellings, as key_of() writes them.
struct Alias {
  const char* key;
  const char* name;
};
constexpr std::array kAliases{
    Alias{"v100", "V100-16GB"},
    Alias{"teslav100sxm216gb", "V100-16GB"},
    Alias{"v100sxm216gb", "V100-16GB"},
    Alias{"v100pcie16gb", "V100-16GB"},
    Alias{"v100sxm232gb", "V100-32GB"},
    Alias{"v100pcie32gb", "V100-32GB"},
    Alias{"v100s", "V100-32GB"},
    Alias{"v100spcie32gb", "V100-32GB"},
    Alias{"p100", "P100-16GB"},
    Alias{"p100pcie16gb", "P100-16GB"},
    Alias{"a100", "A100-40GB"},
    Alias{"a100sxm440gb", "A100-40GB"},
    Alias{"a100pcie40gb", "A100-40GB"},
    Alias{"a100sxm480gb", "A100-80GB"},
    Alias{"a100pcie80gb", "A100-80GB"},
    Alias{"a100sxm80gb", "A100-80GB"},
    Alias{"h100", "H100-80GB"},
    Alias{"h10080gbhbm3", "H100-80GB"},
    Alias{"h100sxm", "H100-80GB"},
    Alias{"h100sxm5", "H100-80GB"},
    Alias{"h100sxm580gb", "H100-80GB"},
    Alias{"h100pcie80gb", "H100-PCIe"},
    Alias{"h200141gb", "H200"},
    Alias{"h200sxm", "H200"},
    Alias{"b200180gb", "B200"},
    Alias{"gh200", "GH200-96GB"},
    Alias{"a6000", "RTX-A6000"},
    Alias{"a600048gb", "RTX-A6000"},
    Alias{"a5000", "RTX-A5000"},
    Alias{"a4000", "RTX-A4000"},
    Alias{"6000ada", "RTX-6000-Ada"},
    Alias{"rtx6000adageneration", "RTX-6000-Ada"},
    Alias{"t416gb", "T4"},
    Alias{"l424gb", "L4"},
    Alias{"l40s48gb", "L40S"},
    Alias{"a1024gb", "A10"},
    Alias{"a10g24gb", "A10G"},
    Alias{"a4048gb", "A40"},
    Alias{"mi300x192gb", "MI300X"},
    Alias{"mi300", "MI300X"},
    Alias{"mi250x128gb", "MI250X"},
    Alias{"4060ti", "RTX-4060-Ti-16GB"},
    Alias{"5060ti", "RTX-5060-Ti-16GB"},
    Alias{"titan", "TITAN-RTX"},
};

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
  static const std::vector<Gpu> table = make_table();
  return table;
}

std::optional<Gpu> find_gpu(const std::string& name) {
  const std::string key = key_of(name);
  if (key.empty()) return std::nullopt;
  for (const Gpu& gpu : known_gpus())
    if (same(key, gpu.name)) return gpu;
  for (const Alias& alias : kAliases)
    if (key == alias.key) return find_gpu(alias.name);
  // A stated memory size after a name that has one variant: "rtx4090-24gb".
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
