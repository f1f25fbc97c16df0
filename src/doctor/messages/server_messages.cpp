// SGLang, TGI, LMDeploy and TensorRT-LLM.
#include "doctor/messages/recognisers.h"

namespace headroom::doctor {
namespace {

// "Not enough memory. Please try to increase --mem-fraction-static."
bool sglang_static(Reading& r) {
  r.after("mem-fraction-static", r.body(), 24);
  if (const auto value = r.after("mem_fraction_static=", r.end(), 80)) {
    if (const auto fraction = real_at(r.text(), *value, true)) {
      r.message.gpu_memory_utilization = fraction->value;
      r.extend(fraction->end);
    }
  }
  r.identify("sglang", "sglang_static");
  r.phase("serve_init", "sizing of the KV pool");
  return true;
}

// "Loaded weights leave no GPU memory for the KV cache: ...": the weights took all that --mem-fraction-static allows.
bool sglang_weights(Reading& r) {
  if (!r.follows("gpumemory", r.body(), 24) && !r.follows("memoryfor", r.body(), 24)) return false;
  r.after("mem-fraction-static", r.body(), 160);
  r.identify("sglang", "sglang_weights");
  r.phase("serve_init", "sizing of the KV pool");
  return true;
}

// "alloc_req_slots runs out of memory. ... available_size()=1, num_reqs=2,"
bool sglang_slots(Reading& r) {
  r.after("num_reqs=", r.body(), 240);
  r.identify("sglang", "sglang_req_slots");
  r.phase("serve", "request slots");
  return true;
}

// "Prefill out of memory. Try to lower your batch size.\nTry to allocate 8192 tokens.\nAvailable tokens: 5248 (...)"
bool sglang_tokens(Reading& r) {
  const bool prefill = r.at(r.trigger(), "prefill");
  if (const auto wanted = r.after("trytoallocate", r.body(), 80)) {
    const auto tokens = whole_number_at(r.text(), *wanted);
    if (tokens && r.at(tokens->end, "tokens")) r.message.kv_tokens_wanted = r.number(*wanted);
  }
  if (const auto available = r.after("availabletokens:", r.body(), 140)) {
    r.message.kv_tokens_available = r.number(*available);
  }
  r.identify("sglang", prefill ? "sglang_prefill" : "sglang_decode");
  r.phase(prefill ? "prefill" : "serve", "the KV pool is full");
  return true;
}

// "Failed to allocate memory for batch_prefill_tmp_v with size 435814400 and alignment 16 in AlignedAllocator"
bool flashinfer(Reading& r) {
  const auto size = r.after("withsize", r.body(), 60);
  if (!size || !r.follows("alignedallocator", *size, 60)) return false;
  r.amount(*size, kBare, kRequested);
  r.after("alignedallocator", *size, 60);
  r.identify("sglang", "flashinfer_workspace");
  r.phase("serve", "FlashInfer's workspace");
  r.hint("single_allocation_limit");
  return true;
}

// "Not enough memory to handle 16000 total tokens with 2 prefill tokens. You need to decrease ..."
bool tgi(Reading& r) {
  const auto count = whole_number_at(r.text(), r.body());
  const bool total = count && r.at(count->end, "totaltokens");
  const bool prefill = count && r.at(count->end, "prefilltokens");
  if (total || prefill) r.message.kv_tokens_wanted = count->value;
  r.after("max-batch-prefill-tokens`", r.body(), 160);
  r.identify("tgi", total ? "tgi_total" : "tgi_prefill");
  r.phase("serve_init", "warm-up");
  return true;
}

// "[TM][ERROR] CUDA runtime error: out of memory /lmdeploy/src/turbomind/utils/memory_utils.cu:32"
bool turbomind(Reading& r) {
  if (!r.after("outofmemory", r.body(), 60)) return false;
  r.identify("lmdeploy", "turbomind");
  r.phase("serve_init", "TurboMind");
  return true;
}

// "No enough gpu memory for runtime." of LMDeploy's PyTorch engine
bool lmdeploy_runtime(Reading& r) {
  r.after("gpumemoryfor", r.trigger(), 24);
  r.identify("lmdeploy", "lmdeploy_runtime");
  r.phase("serve_init", "sizing of the KV cache");
  return true;
}

// "[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, ...): out of memory (...)"
bool tensorrt_runtime(Reading& r) {
  const auto failed = r.after("outofmemory", r.body(), 200);
  if (!failed || r.follows("[tensorrt-llm]", r.body(), 180)) return false;
  if (const auto size = r.after("requestedsizewas", *failed, 24)) r.amount(*size, kIec, kRequested);
  r.identify("tensorrt-llm", "trtllm_runtime");
  return true;
}

// "[virtualMemoryBuffer.cpp::resizePhysical::145] Error Code 2: OutOfMemory (Requested size was 10485760 bytes.)"
bool tensorrt_size(Reading& r) {
  if (const auto size = r.after("requestedsizewas", r.body(), 8)) r.amount(*size, kIec, kRequested);
  r.identify("tensorrt-llm", "trt_size");
  return true;
}

// "Requested amount of GPU memory (8589934592 bytes) could not be allocated."
bool tensorrt_amount(Reading& r) {
  r.amount(r.body(), kIec, kRequested);
  r.after("couldnotbeallocated", r.body(), 60);
  r.identify("tensorrt-llm", "trt_amount");
  return true;
}

// "Executor creation failed due to insufficient GPU memory."
bool tensorrt_executor(Reading& r) {
  r.identify("tensorrt-llm", "trtllm_executor");
  r.phase("serve_init", "creation of the executor");
  return true;
}

}  // namespace

void add_server_recognisers(std::vector<Recogniser>& table) {
  table.push_back({"sglang_static", "notenoughmemory.pleasetrytoincrease--mem", sglang_static});
  table.push_back({"sglang_weights", "weightsleaveno", sglang_weights});
  table.push_back({"sglang_weights", "weightsleavesno", sglang_weights});
  table.push_back({"sglang_slots", "alloc_req_slotsrunsoutofmemory", sglang_slots});
  table.push_back({"sglang_prefill", "prefilloutofmemory", sglang_tokens});
  table.push_back({"sglang_decode", "decodeoutofmemory", sglang_tokens});
  table.push_back({"flashinfer", "failedtoallocatememoryfor", flashinfer});
  table.push_back({"tgi", "notenoughmemorytohandle", tgi});
  table.push_back({"turbomind", "[tm][error]cuda", turbomind});
  table.push_back({"turbomind", "[tm][fatal]", turbomind});
  table.push_back({"lmdeploy_runtime", "noenoughgpumemory", lmdeploy_runtime});
  table.push_back({"lmdeploy_runtime", "notenoughgpumemoryfor", lmdeploy_runtime});
  table.push_back({"trtllm_runtime", "[tensorrt-llm][error]", tensorrt_runtime});
  table.push_back({"trt_size", "errorcode2:outofmemory(", tensorrt_size});
  table.push_back({"trt_allocator", "errorcode1:cudaruntime(outofmemory)", tensorrt_size});
  table.push_back({"trt_amount", "requestedamountofgpumemory(", tensorrt_amount});
  table.push_back({"trtllm_executor", "executorcreationfailedduetoinsufficientgpumemory", tensorrt_executor});
}

}  // namespace headroom::doctor
