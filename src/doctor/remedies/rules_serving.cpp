// Servers (T33 to T37): what the KV cache, the weights and the workspace take of the device.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/kv_direction.h"
#include "doctor/remedies/rules.h"

namespace headroom::doctor {
namespace {

bool applies(const Situation& s) { return s.serving() && s.pool() == Pool::device; }

void utilization(const Situation& s, Findings& findings) {
  if (!applies(s)) return;
  const KvAdvice advice = kv_advice(s);
  if (advice.direction == KvDirection::keep) return;
  const std::string fraction = fmt::format("{:.2f}", advice.fraction);
  Remedy remedy = make_remedy(s, "gpu-memory-utilization", {{"fraction", fraction}},
                              {{"gpu_memory_utilization", fraction}}, advice.why);
  // The server takes what this option says: bytes of the estimate move with it and are no saving.
  remedy.saves_bytes = advice.bytes;
  remedy.one_try = true;
  if (advice.direction == KvDirection::raise)
    remedy.caveats.push_back("the opposite advice, lowering it, is for failures outside the KV cache");
  else
    remedy.caveats.push_back("the opposite advice, raising it, is for a KV cache that is too small");
  findings.offer(std::move(remedy));
}

void max_model_len(const Situation& s, Findings& findings) {
  if (!applies(s)) return;
  const Message* message = s.message();
  int64_t length = s.job().max_model_len.value_or(s.shape() ? s.shape()->max_positions : 0);
  std::string why = "the cache must hold one request of full length";
  if (message && message->kv_tokens_available && *message->kv_tokens_available > 0) {
    length = *message->kv_tokens_available / 16 * 16;
    why = fmt::format("the cache has room for {} tokens", *message->kv_tokens_available);
  } else if (s.patient().estimate && s.patient().estimate->kv_tokens && *s.patient().estimate->kv_tokens > 0 &&
             *s.patient().estimate->kv_tokens < length) {
    length = *s.patient().estimate->kv_tokens / 16 * 16;
    why = fmt::format("the cache has room for about {} tokens", *s.patient().estimate->kv_tokens);
  } else if (length > 0) {
    length = std::max<int64_t>(2048, length / 2);
  }
  if (length <= 0) {
    findings.offer(make_remedy(s, "max-model-len", {{"length", "8192"}, {"input", "8191"}}, {}, why));
    return;
  }
  Remedy remedy =
      make_remedy(s, "max-model-len", {{"length", std::to_string(length)}, {"input", std::to_string(length - 1)}},
                  {{"max_model_len", std::to_string(length)}}, why);
  if (remedy.saves_bytes && *remedy.saves_bytes <= 0) remedy.saves_bytes.reset();
  if (message && message->kv_tokens_available) remedy.fits_alone = true;
  findings.offer(std::move(remedy));
}

void max_sequences(const Situation& s, Findings& findings) {
  if (!applies(s)) return;
  const int64_t now = s.job().max_sequences.value_or(256);
  if (now <= 8) return;
  const int64_t count = std::max<int64_t>(8, now / 4);
  Remedy remedy =
      make_remedy(s, "max-sequences", {{"count", std::to_string(count)}}, {{"max_sequences", std::to_string(count)}},
                  "the sampler's warm-up and the graphs are sized for this many requests");
  if (remedy.saves_bytes && *remedy.saves_bytes <= 0) remedy.saves_bytes.reset();
  findings.offer(std::move(remedy));
}

void batched_tokens(const Situation& s, Findings& findings) {
  if (!applies(s)) return;
  const int64_t now = s.job().max_batched_tokens.value_or(8192);
  if (now <= 2048) return;
  const int64_t tokens = s.phase("prefill") && now > 4096 ? 4096 : 2048;
  Remedy remedy = make_remedy(s, "batched-tokens", {{"tokens", std::to_string(tokens)}},
                              {{"max_batched_tokens", std::to_string(tokens)}}, "activations of one prefill step");
  if (remedy.saves_bytes && *remedy.saves_bytes <= 0) remedy.saves_bytes.reset();
  findings.offer(std::move(remedy));
}

void kv_dtype(const Situation& s, Findings& findings) {
  if (!applies(s)) return;
  const std::string now = s.job().kv_dtype.value_or("auto");
  if (now.find("8") != std::string::npos || now.find("q4") != std::string::npos)
    return findings.refuse("kv-dtype", fmt::format("keys and values are in {} already", now));
  if (s.job().system != System::llama_server && s.gpu() && s.gpu()->compute_capability > 0 &&
      s.gpu()->compute_capability < 80)
    return findings.refuse("kv-dtype", fmt::format("{} has no fp8 kernels", s.gpu()->name));
  Remedy remedy =
      make_remedy(s, "kv-dtype", {}, {{"kv_dtype", s.job().system == System::llama_server ? "q8_0" : "fp8"}},
                  "the cache holds twice the tokens");
  if (remedy.saves_bytes && *remedy.saves_bytes <= 0) remedy.saves_bytes.reset();
  if (s.job().system != System::llama_server) remedy.needs = "Ada or Hopper; on Ampere only some attention backends";
  findings.offer(std::move(remedy));
}

void eager(const Situation& s, Findings& findings) {
  if (!applies(s)) return;
  if (s.job().eager.value_or(false)) return findings.refuse("eager", "no graphs are captured already");
  Remedy remedy = make_remedy(s, "eager", {}, {{"eager", "true"}}, "captured graphs keep pools of their own");
  if (remedy.saves_bytes && *remedy.saves_bytes <= 0) remedy.saves_bytes.reset();
  if (s.phase("cudagraph_capture")) remedy.why = "it failed while graphs were captured";
  findings.offer(std::move(remedy));
}

void tensor_parallel(const Situation& s, Findings& findings) {
  if (!applies(s)) return;
  const int64_t now = s.job().tensor_parallel.value_or(1);
  int64_t gpus = std::max<int64_t>(2, 2 * now);
  for (int64_t wider = gpus; wider <= 16; wider *= 2)
    if (s.fits_after({{"tensor_parallel", std::to_string(wider)}, {"gpus", std::to_string(wider)}})) {
      gpus = wider;
      break;
    }
  std::string split = "1";
  for (int64_t i = 1; i < gpus; ++i) split += ",1";
  Remedy remedy = make_remedy(s, "tensor-parallel", {{"gpus", std::to_string(gpus)}, {"split", split}},
                              {{"tensor_parallel", std::to_string(gpus)}, {"gpus", std::to_string(gpus)}},
                              fmt::format("weights and cache split over {} GPUs", gpus));
  if (remedy.saves_bytes && *remedy.saves_bytes <= 0) remedy.saves_bytes.reset();
  if (s.job().gpus.value_or(1) >= gpus) remedy.effort = "flag";
  findings.offer(std::move(remedy));
}

void offload(const Situation& s, Findings& findings) {
  if (!applies(s)) return;
  if (s.job().system == System::llama_server) {
    const int64_t layers = s.shape() ? s.shape()->layers : 0;
    const int64_t now = s.job().gpu_layers.value_or(layers > 0 ? layers + 1 : 0);
    int64_t chosen = now > 0 ? now / 2 : 0;
    for (int64_t n = now - 1; n > 0; --n)
      if (s.fits_after({{"gpu_layers", std::to_string(n)}})) {
        chosen = n;
        break;
      }
    Changes changes;
    if (now > 0) changes.emplace_back("gpu_layers", std::to_string(chosen));
    findings.offer(make_remedy(s, "gpu-layers", {{"layers", now > 0 ? std::to_string(chosen) : "<half>"}},
                               std::move(changes), "the other layers run on the CPU"));
    return;
  }
  int64_t gib = 8;
  if (s.balance().need && s.balance().limit && *s.balance().need > *s.balance().limit)
    gib = (*s.balance().need - *s.balance().limit) / (int64_t{1} << 30) + 2;
  Remedy remedy =
      make_remedy(s, "serve-offload", {{"gib", std::to_string(gib)}},
                  {{"cpu_offload_bytes", std::to_string(gib << 30)}}, "that much of the weights stays on the host");
  if (remedy.saves_bytes && *remedy.saves_bytes <= 0) remedy.saves_bytes.reset();
  remedy.caveats.push_back("those weights cross the bus for every token");
  findings.offer(std::move(remedy));
}

constexpr Rule kRules[] = {utilization, max_model_len, max_sequences,   batched_tokens,
                           kv_dtype,    eager,         tensor_parallel, offload};

}  // namespace

std::span<const Rule> serving_rules() { return kRules; }

}  // namespace headroom::doctor
