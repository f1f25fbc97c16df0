// Merging, quantizing or converting a model, or building a package: neither training nor inference.
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

bool device_of_pytorch(const CaseView& view) { return on_device(view) && view.reinforcement_library().empty(); }

Evidence told(const CaseView& view, ToldStage stage) {
  const std::string_view word = view.story().at(stage);
  if (word.empty()) return {};
  return {0.93, "`" + std::string(word) + "`, where the log says that it failed"};
}
Evidence merging(const CaseView& view) { return told(view, ToldStage::merging); }
Evidence quantising(const CaseView& view) { return told(view, ToldStage::quantising); }
Evidence converting(const CaseView& view) { return told(view, ToldStage::converting); }
Evidence building(const CaseView& view) { return told(view, ToldStage::building); }

constexpr std::string_view kMerging =
    "in merge_and_unload|in unload_and_optionally_merge|in merge_lora|merge_lora.py|export_model.py|mergekit-|"
    "merge_peft_adapter|merge_lora_low_mem|fastchat.model.apply_lora";
constexpr std::string_view kQuantising =
    "auto_gptq/modeling|autogptq/modeling|awq/quantize|/awq/models/base.py|gptqmodel/|llmcompressor/|auto_round/|"
    "gptq-for-llama|--wbits|llama_quant|modelopt/torch/quantization|quantize/quantizer.py";
constexpr std::string_view kConverting =
    "convert_hf_to_gguf|convert-hf-to-gguf|convert.py|convert_checkpoint.py|convert_weights|convert_llama_weights|"
    "convert_mistral|torch/onnx/|optimum/exporters|optimum-cli export|consolidated.00.pth|zero_to_fp32";
constexpr std::string_view kBuilding =
    "cc1plus|cicc|ninja: build stopped|max_jobs|building wheel for|bdist_wheel|setup.py install|"
    "setup.py build|cmake --build";

constexpr Situation kSituations[] = {
    {"merged_on_the_device",
     "a merge needs the base model whole, and no GPU: matrices are added once",
     device_of_pytorch,
     {{log, 0.88, kMerging}},
     {{"on-cpu",
       "merge on the CPU: from_pretrained(..., device_map=\"cpu\"), then merge_and_unload() (LLaMA-Factory: "
       "export_device: cpu)"},
      {"half-inference", "the base in 16 bits: from_pretrained(..., torch_dtype=torch.bfloat16)"},
      {"serve-offload", "device_map=\"auto\", offload_folder=\"offload\": what finds no room stays on the host"}},
     merging},
    {"merged_in_host_memory",
     "a merge holds the base model whole, in 32 bits unless somebody says otherwise, and a copy while it is written",
     host_ran_out,
     {{log, 0.88, kMerging}},
     {{"lean-load",
       "from_pretrained(..., torch_dtype=torch.bfloat16, low_cpu_mem_usage=True); mergekit: --lazy-unpickle "
       "--low-cpu-memory; save_pretrained(..., max_shard_size=\"2GB\")"},
      {"more-swap", "swap for this one step: it runs once (Windows: a larger paging file)"},
      {"host-memory"}},
     merging},
    {"calibration_on_the_device",
     "quantising runs samples through the model, layer by layer: what the samples keep decides, beside the weights",
     device_of_pytorch,
     {{log, 0.88, kQuantising}},
     {{"input-size",
       "fewer and shorter calibration samples: AutoAWQ max_calib_samples=64, max_calib_seq_len=512, "
       "n_parallel_calib_samples=1; GPTQ 128 samples of 512 tokens, batch size 1"},
      {"serve-offload",
       "the model on the host, a layer at a time on the device: device_map=\"auto\" with max_memory; AutoGPTQ "
       "cache_examples_on_gpu=False; llm-compressor sequential_targets"},
      {"quantized-model", "a version that is published quantised: AWQ, GPTQ, GGUF"}},
     quantising},
    {"quantised_in_host_memory",
     "quantising holds the whole model and its calibration samples in host memory",
     host_ran_out,
     {{log, 0.86, kQuantising}},
     {{"more-swap", "swap for this one step: it runs once"},
      {"host-memory"},
      {"input-size", "fewer and shorter calibration samples: 64 of 512 tokens"},
      {"lean-load", "torch_dtype=\"auto\", low_cpu_mem_usage=True: not in 32 bits, and not twice"}},
     quantising},
    {"converted_on_the_device",
     "a conversion needs the model whole, and no GPU",
     device_of_pytorch,
     {{log, 0.86, kConverting}},
     {{"on-cpu", "convert on the CPU: device=\"cpu\" (TensorRT-LLM: --load_model_on_cpu; optimum: --device cpu)"},
      {"half-inference", "in 16 bits: torch_dtype=torch.float16 (optimum: --dtype fp16; model.half())"},
      {"tensor-parallel", "TensorRT-LLM: --tp_size 2 --workers 1: parts, one after another"}},
     converting},
    {"converted_in_host_memory",
     "a conversion holds the whole model in host memory, often in 32 bits and twice",
     host_ran_out,
     {{log, 0.86, kConverting}},
     {{"more-swap", "swap for this one step: it runs once (Windows: a larger paging file)"},
      {"lean-load",
       "less at a time: low_cpu_mem_usage=True, torch_dtype=torch.float16 (llama.cpp: --use-temp-file, no --outtype "
       "f32; DeepSpeed: zero_to_fp32.py --max_shard_size 2GB)"},
      {"host-memory"}},
     converting},
    {"built_by_many_compilers",
     "one compiler per core builds the package, and each takes 2 to 6 GB",
     host_ran_out,
     {{log, 0.9, kBuilding}},
     {{"fewer-workers",
       "MAX_JOBS=2 pip install ... --no-build-isolation (CMake: -j2), or a wheel that is built already"},
      {"more-swap", "swap for the build: it runs once"},
      {"host-memory"}},
     building},
};

}  // namespace

std::span<const Situation> reworking_situations() { return kSituations; }

}  // namespace headroom::doctor
