// Options of servers.
#include "doctor/remedies/option_tables.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum OptionLine::Form;

constexpr OptionLine kLines[] = {
    {"gpu-memory-utilization", vllm, text, "--gpu-memory-utilization {fraction}"},
    {"gpu-memory-utilization", sglang, text, "--mem-fraction-static {fraction}"},
    {"gpu-memory-utilization", tgi, text, "--cuda-memory-fraction {fraction}"},
    {"gpu-memory-utilization", llama_server, missing, "llama.cpp takes what --ctx-size and --n-gpu-layers need"},
    {"max-model-len", vllm, text, "--max-model-len {length}"},
    {"max-model-len", sglang, text, "--context-length {length}"},
    {"max-model-len", tgi, text, "--max-total-tokens {length} --max-input-tokens {input}"},
    {"max-model-len", llama_server, text, "--ctx-size {length}"},
    {"max-sequences", vllm, text, "--max-num-seqs {count}"},
    {"max-sequences", sglang, text, "--max-running-requests {count}"},
    {"max-sequences", tgi, text, "--max-concurrent-requests {count}"},
    {"max-sequences", llama_server, text, "--parallel {count}"},
    {"batched-tokens", vllm, text, "--max-num-batched-tokens {tokens}"},
    {"batched-tokens", sglang, text, "--chunked-prefill-size {tokens}"},
    {"batched-tokens", tgi, text, "--max-batch-prefill-tokens {tokens}"},
    {"batched-tokens", llama_server, text, "--ubatch-size {tokens}"},
    {"kv-dtype", vllm, text, "--kv-cache-dtype fp8"},
    {"kv-dtype", sglang, text, "--kv-cache-dtype fp8_e5m2"},
    {"kv-dtype", tgi, text, "--kv-cache-dtype fp8_e5m2"},
    {"kv-dtype", llama_server, text, "--cache-type-k q8_0 --cache-type-v q8_0 --flash-attn on"},
    {"eager", vllm, text, "--enforce-eager"},
    {"eager", sglang, text, "--disable-cuda-graph"},
    {"eager", tgi, text, "--cuda-graphs 0"},
    {"eager", llama_server, missing, "llama.cpp's graphs take next to nothing"},
    {"quantized-model", vllm, text,
     "--model: an AWQ or GPTQ version of the model (--quantization fp8 halves it as it is)"},
    {"quantized-model", sglang, text,
     "--model-path: an AWQ or GPTQ version of the model (--quantization fp8 halves it as it is)"},
    {"quantized-model", tgi, text, "--quantize bitsandbytes-nf4 (or an AWQ or GPTQ version of the model)"},
    {"quantized-model", llama_server, text, "-m: a smaller file of the same model (Q4_K_M: 4.85 bits per weight)"},
    {"quantized-model", litgpt, keys, "quantize=bnb.nf4"},
    {"quantized-model", pytorch_script, text,
     "from_pretrained(..., quantization_config=BitsAndBytesConfig(load_in_4bit=True))"},
    {"tensor-parallel", vllm, text, "--tensor-parallel-size {gpus}"},
    {"tensor-parallel", sglang, text, "--tp {gpus}"},
    {"tensor-parallel", tgi, text, "--num-shard {gpus}"},
    {"tensor-parallel", llama_server, text, "--tensor-split {split}"},
    {"serve-offload", vllm, text, "--cpu-offload-gb {gib}"},
    {"serve-offload", sglang, text, "--cpu-offload-gb {gib}"},
    {"serve-offload", tgi, missing, "not in TGI: a quantised model instead"},
    {"serve-offload", llama_server, text, "--n-gpu-layers {layers}"},
    {"serve-offload", pytorch_script, text, "from_pretrained(..., device_map=\"auto\", max_memory={0: ...})"},
    {"gpu-layers", llama_server, text, "--n-gpu-layers {layers}"},
    {"gpu-layers", pytorch_script, missing, "an option of llama.cpp: device_map or a server's offload elsewhere"},
};

}  // namespace

std::span<const OptionLine> serving_options() { return kLines; }

}  // namespace headroom::doctor
