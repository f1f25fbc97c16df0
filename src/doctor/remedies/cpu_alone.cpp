#include "doctor/remedies/cpu_alone.h"

#include "base/find_text.h"
#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

constexpr std::string_view kNoDevice =
    "using gpu in script?: no|using gpu in script? no|using gpu: no|gpu used: no|use gpu: false|use_gpu: false|"
    "use_gpu=false|gpu: none|gpus: none|gpu available: false|gpu available: no|cuda available: false|cuda available: "
    "no|cuda is available: false|is_available(): false|is_available() = false|is_available() returns false|"
    "cuda used to build pytorch: none|cuda: not available|no gpu$|no gpus$|have no gpu|without a gpu|without any gpu|"
    "without gpu|cpu only|cpu-only|cpu alone|only cpu|only the cpu|only on cpu|only on the cpu|training on "
    "cpu|training "
    "on the cpu|train on cpu|train on the cpu|trained on cpu|--device cpu|--device=cpu|device: "
    "cpu|--no_cuda|no_cuda=true|"
    "use_cpu=true|use_cpu: true|没有gpu|没有显卡|无gpu|无显卡|纯cpu|只用cpu|仅用cpu|用cpu训练|使用cpu|用cpu跑|cpu训练|"
    "i use cpu|i use a cpu|i use the cpu|i used cpu|i only use cpu|i am using cpu|i'm using cpu|i am using a cpu|"
    "i run it on cpu|i run it on the cpu|我用的是cpu|我用的cpu|gpuなし|gpuが無|cpuのみ|cpuだけ|cpuで学習|cpuで訓練";
// What a CPU only helps with.
constexpr std::string_view kHelpers =
    "cpu offload|使用cpu内存|使用cpu卸载|使用cpu offload|使用cpu加载|cpu-offload|cpu_offload|cpu adam|cpu ram|cpu "
    "memory|cpu workers|cpu for the data|cpu for data|cpu to "
    "load|cpu to save";
// A machine by its kind, in a post without a GPU.
constexpr std::string_view kMachines =
    "standard-4 cpu|standard-8 cpu|standard-16 cpu|standard-32 cpu|cpu instance|cpu machine|cpu node|cpu server";
constexpr std::string_view kWithADevice =
    "using gpu in script?: yes|using gpu in script? yes|using gpu in script?: y$|cuda out of memory";

// "PyTorch version (GPU?): 1.4.0 (False)", as transformers-cli env prints it.
std::string_view printed_without(std::string_view log) {
  constexpr std::string_view kAsks = "pytorch version (gpu?):";
  const size_t at = find_text(log, kAsks);
  if (at == std::string_view::npos) return {};
  const std::string_view line = log.substr(at, log.substr(at).find('\n'));
  return find_text(line, "(false)") == std::string_view::npos ? std::string_view() : line.substr(0, 40);
}

}  // namespace

std::string_view cpu_alone(std::string_view log) {
  if (!any_word(log, kWithADevice).empty()) return {};
  std::string_view told = affirmed_word(without_words(log, kHelpers), kNoDevice);
  if (told.empty() && any_word(log, "gpu|cuda|vram|显存").empty()) told = affirmed_word(log, kMachines);
  return told.empty() ? printed_without(log) : told;
}

}  // namespace headroom::doctor
