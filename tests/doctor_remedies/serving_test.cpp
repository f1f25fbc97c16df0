// Servers: the two failures that need opposite changes, and other ways to give the KV cache room.
#include "doctor/remedies/kv_direction.h"
#include "incidents.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;

double fraction_of(const Remedy& remedy) {
  for (const auto& [name, value] : remedy.changes)
    if (name == "gpu_memory_utilization") return std::stod(value);
  return 0;
}

struct Direction {
  const char* what;
  System system;
  double now;
  const char* text;
  const char* phase;
  double requested;  // GiB; 0: none
  KvDirection expected;
};

constexpr Direction kDirections[] = {
    {"vLLM: no blocks", System::vllm, 0.9,
     "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing "
     "the engine.",
     "serve_init", 0, KvDirection::raise},
    {"vLLM: less free than wanted", System::vllm, 0.9,
     "ValueError: Free memory on device (10.0/23.6 GiB) on startup is less than desired GPU memory utilization (0.9, "
     "21.2 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
     "serve_init", 0, KvDirection::lower},
    {"vLLM: graph capture", System::vllm, 0.95, "CUDA out of memory while capturing graphs", "cudagraph_capture", 0.2,
     KvDirection::lower},
    {"vLLM: sampler warm-up", System::vllm, 0.95,
     "CUDA out of memory occurred when warming up sampler with 1024 dummy requests", "serve_init", 1.2,
     KvDirection::lower},
    {"SGLang: the pool at start", System::sglang, 0.7,
     "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "serve_init", 0,
     KvDirection::raise},
    {"SGLang: prefill at run time", System::sglang, 0.9, "CUDA out of memory. Tried to allocate 2.00 GiB", "prefill", 2,
     KvDirection::lower},
    {"SGLang: decoding at run time", System::sglang, 0.9, "CUDA out of memory. Tried to allocate 1.00 GiB", "serve", 1,
     KvDirection::lower},
    {"SGLang: graphs", System::sglang, 0.9, "Capture cuda graph failed: CUDA out of memory", "cudagraph_capture", 0.5,
     KvDirection::lower},
};

TEST(Serving, TheDirectionIsRightInEveryCase) {
  for (const Direction& row : kDirections) {
    Case incident;
    Job job = serving_job(row.system);
    job.serving.gpu_memory_utilization = row.now;
    incident.job = job;
    incident.gpu = find_gpu("rtx-4090");
    Message message;
    message.framework = row.requested > 0 ? "pytorch-cuda" : "vllm";
    message.text = row.text;
    message.phase = row.phase;
    if (row.requested > 0) message.requested_bytes = gib(row.requested);
    incident.messages.push_back(message);
    const Diagnosis diagnosis = diagnose(incident);
    const Remedy remedy = expect_remedy(diagnosis, "gpu-memory-utilization");
    EXPECT_EQ(row.expected == KvDirection::raise, fraction_of(remedy) > row.now) << row.what;
    EXPECT_NE(fraction_of(remedy), row.now) << row.what;
    EXPECT_THAT(caveats_of(remedy), HasSubstr("the opposite advice")) << row.what;
  }
}

// When a message asks for fewer of something, the device's share does not matter.
TEST(Serving, FewerSlotsAndShorterPrefills) {
  Case incident;
  incident.job = serving_job(System::sglang);
  Message message;
  message.framework = "sglang";
  message.phase = "serve";
  message.text = "alloc_req_slots runs out of memory. Please set a smaller number for `--max-running-requests`.";
  incident.messages.push_back(message);
  Diagnosis diagnosis = diagnose(incident);
  EXPECT_EQ(remedy_of(diagnosis, "gpu-memory-utilization"), nullptr);
  EXPECT_EQ(diagnosis.remedies[0].name, "max-sequences");
  incident.job = serving_job(System::tgi);
  incident.messages[0].framework = "tgi";
  incident.messages[0].text =
      "Not enough memory to handle 4096 prefill tokens. You need to decrease `--max-batch-prefill-tokens`";
  diagnosis = diagnose(incident);
  EXPECT_EQ(remedy_of(diagnosis, "gpu-memory-utilization"), nullptr);
  EXPECT_EQ(diagnosis.remedies[0].set, "--max-batch-prefill-tokens 2048");
}

// vLLM states the missing bytes.
TEST(Serving, RaisedByWhatTheCacheLacks) {
  Case incident;
  Job job = serving_job(System::vllm);
  job.serving.gpu_memory_utilization = 0.8;
  incident.job = job;
  incident.gpu = find_gpu("rtx-4090");
  Message message;
  message.framework = "vllm";
  message.phase = "serve_init";
  message.kv_bytes_wanted = gib(4);
  message.kv_bytes_available = gib(2);
  incident.messages.push_back(message);
  const Diagnosis diagnosis = diagnose(incident);
  ASSERT_FALSE(diagnosis.causes.empty());
  EXPECT_EQ(diagnosis.causes[0].name, "kv_cache_too_small");
  EXPECT_THAT(diagnosis.causes[0].evidence, HasSubstr("4.00 GiB of KV cache wanted, 2.00 GiB there"));
  // 2 of 23.6 GiB are 8.5 %.
  EXPECT_NEAR(fraction_of(expect_remedy(diagnosis, "gpu-memory-utilization")), 0.9, 0.011);
}

TEST(Serving, NotAboveNinetyFive) {
  Case incident;
  Job job = serving_job(System::vllm);
  job.serving.gpu_memory_utilization = 0.95;
  incident.job = job;
  Message message;
  message.framework = "vllm";
  message.kv_tokens_wanted = 131072;
  message.kv_tokens_available = 40000;
  incident.messages.push_back(message);
  const Diagnosis diagnosis = diagnose(incident);
  EXPECT_EQ(remedy_of(diagnosis, "gpu-memory-utilization"), nullptr);
  const Remedy length = expect_remedy(diagnosis, "max-model-len");
  EXPECT_EQ(length.set, "--max-model-len 40000");
  EXPECT_TRUE(length.fits_alone);
}

TEST(Serving, AnotherProcessOnTheDevice) {
  Case incident;
  incident.job = serving_job(System::vllm);
  Message message;
  message.framework = "vllm";
  message.phase = "serve_init";
  message.text = "Free memory on device is less than desired GPU memory utilization";
  message.capacity_bytes = gib(24);
  message.free_bytes = gib(12);
  incident.messages.push_back(message);
  EXPECT_NEAR(fraction_of(expect_remedy(diagnose(incident), "gpu-memory-utilization")), 0.5, 0.001);
}

TEST(Serving, WithoutAMessageTheEstimateDecides) {
  Job job = serving_job(System::vllm);
  job.serving.max_model_len = 65536;
  const Diagnosis diagnosis = diagnose(case_of(job, "l4"));
  EXPECT_EQ(diagnosis.fits, false);
  ASSERT_FALSE(diagnosis.causes.empty());
  EXPECT_EQ(diagnosis.causes[0].name, "kv_cache_too_small");
  EXPECT_THAT(diagnosis.causes[0].evidence, HasSubstr("one request may have 65536"));
  const Remedy raise = expect_remedy(diagnosis, "gpu-memory-utilization");
  EXPECT_GT(fraction_of(raise), 0.92);
  EXPECT_THAT(raise.why, HasSubstr("alone is not enough"));
  EXPECT_THAT(expect_remedy(diagnosis, "kv-dtype").why, HasSubstr("tokens instead of"));
  EXPECT_FALSE(diagnosis.smallest_fitting_set.empty());
  EXPECT_FALSE(in_set(diagnosis, "max-model-len")) << "somebody asked for that length";
}

TEST(Serving, WhatFitsIsLeftAlone) {
  Job job = serving_job(System::vllm);
  job.serving.max_model_len = 8192;
  const Diagnosis diagnosis = diagnose(case_of(job, "l4"));
  EXPECT_EQ(diagnosis.fits, true);
  EXPECT_EQ(remedy_of(diagnosis, "gpu-memory-utilization"), nullptr);
  EXPECT_EQ(remedy_of(diagnosis, "larger-gpu"), nullptr);
  EXPECT_TRUE(diagnosis.smallest_fitting_set.empty());
}

TEST(Serving, TheWeightsAloneAreTooMuch) {
  const Diagnosis diagnosis =
      diagnose(case_of(serving_job(System::vllm, "meta-llama/Llama-3.1-70B-Instruct"), "h100-80gb"));
  ASSERT_FALSE(diagnosis.causes.empty());
  EXPECT_EQ(diagnosis.causes[0].name, "model_too_large");
  EXPECT_EQ(expect_remedy(diagnosis, "tensor-parallel").set, "--tensor-parallel-size 4");
  EXPECT_NE(remedy_of(diagnosis, "quantized-model"), nullptr);
  EXPECT_THAT(refusal_of(diagnosis, "max-model-len"), HasSubstr("no room at all"));
}

TEST(Serving, TheSmallestOffloadThatFits) {
  Job job = serving_job(System::vllm);
  job.serving.max_model_len = 65536;
  const Case incident = case_of(job, "l4");
  const Remedy remedy = expect_remedy(diagnose(incident), "serve-offload");
  ASSERT_TRUE(remedy.fits_alone);
  Job less = with_changes(job, remedy.changes);
  *less.serving.cpu_offload_bytes -= kGiB;
  EXPECT_LT(static_cast<double>(*estimate(less, *incident.shape, incident.gpu).kv_tokens), 1.1 * 65536);
  EXPECT_THAT(caveats_of(remedy), HasSubstr("cross the bus for every token"));
}

TEST(Serving, GraphCaptureAsksForFewerGraphs) {
  Case incident;
  Job job = serving_job(System::sglang);
  job.serving.gpu_memory_utilization = 0.9;
  incident.job = job;
  Message message = cuda_message(0.5, 0.2, 22, 0.3, 23.6);
  message.phase = "cudagraph_capture";
  incident.messages.push_back(message);
  const Diagnosis diagnosis = diagnose(incident);
  ASSERT_NE(cause_of(diagnosis, "graph_capture"), nullptr);
  EXPECT_EQ(expect_remedy(diagnosis, "eager").set, "--disable-cuda-graph");
  EXPECT_LT(fraction_of(expect_remedy(diagnosis, "gpu-memory-utilization")), 0.9);
  EXPECT_EQ(expect_remedy(diagnosis, "max-sequences").set, "--max-running-requests 64");
}

TEST(Serving, PrefillsComeInSmallerPieces) {
  Case incident;
  Job job = serving_job(System::sglang);
  incident.job = job;
  incident.gpu = find_gpu("h100-80gb");
  Message message = cuda_message(3, 0.2, 76, 0.3, 79);
  message.phase = "prefill";
  incident.messages.push_back(message);
  EXPECT_EQ(expect_remedy(diagnose(incident), "batched-tokens").set, "--chunked-prefill-size 4096");
  incident.job->serving.prefill_chunk = 2048;
  EXPECT_THAT(refusal_of(diagnose(incident), "batched-tokens"), HasSubstr("2048 tokens already"));
}

TEST(Serving, LlamaServerOffloadsLayers) {
  Job job = serving_job(System::llama_server);
  job.precision.quantization = "q8_0";
  job.serving.gpu_layers = 99;
  job.serving.max_model_len = 32768;
  const Case incident = case_of(job, "rtx-3060");
  const Diagnosis diagnosis = diagnose(incident);
  const Remedy remedy = expect_remedy(diagnosis, "gpu-layers");
  ASSERT_TRUE(remedy.fits_alone);
  const int64_t layers = std::stoll(remedy.changes[0].second);
  EXPECT_LT(layers, 33);
  EXPECT_GT(layers, 16);
  EXPECT_EQ(remedy.set, "--n-gpu-layers " + std::to_string(layers));
  EXPECT_EQ(expect_remedy(diagnosis, "kv-dtype").set, "--cache-type-k q8_0 --cache-type-v q8_0 --flash-attn on");
  EXPECT_EQ(expect_remedy(diagnosis, "max-model-len").set.substr(0, 10), "--ctx-size");
}

// llama.cpp's cache has the requested size; it does not take the rest of the device.
TEST(Serving, LlamaServersContextIsTheCache) {
  Job job = serving_job(System::llama_server);
  job.serving.max_model_len = 131072;
  const Diagnosis diagnosis = diagnose(case_of(job, "rtx-4090"));
  ASSERT_NE(cause_of(diagnosis, "kv_cache_too_large"), nullptr);
  const Remedy remedy = expect_remedy(diagnosis, "max-model-len");
  EXPECT_TRUE(remedy.fits_alone);
  EXPECT_GT(*remedy.saves_bytes, 4 * kGiB);
}

TEST(Serving, NoFp8CacheBeforeAmpere) {
  Job job = serving_job(System::vllm);
  job.serving.max_model_len = 65536;
  EXPECT_THAT(refusal_of(diagnose(case_of(job, "v100-32gb")), "kv-dtype"), HasSubstr("no fp8 kernels"));
}

}  // namespace
}  // namespace headroom::doctor
