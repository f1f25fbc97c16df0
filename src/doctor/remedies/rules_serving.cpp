// Servers (T33 to T37): the memory of KV cache, weights and workspace.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "doctor/config/defaults.h"
#include "doctor/remedies/figures.h"
#include "doctor/remedies/kv_direction.h"
#include "doctor/remedies/posted_numbers.h"
#include "doctor/remedies/rules.h"

namespace headroom::doctor {
namespace {

bool applies(const CaseView& s) { return s.serving() && s.pool() == Pool::device; }

// Bytes that these remedies free go to the KV cache, so the gain is the number of tokens it then holds. False when
// neither bytes nor tokens are gained.
bool tell_gain(const CaseView& s, Remedy& remedy) {
  if (!remedy.saves_bytes) return true;
  if (*remedy.saves_bytes <= 0) remedy.saves_bytes.reset();
  const std::optional<Estimate>& now = s.incident().estimate;
  const std::optional<Estimate> after = s.after(remedy.changes);
  if (now && after && now->kv_tokens && after->kv_tokens && *after->kv_tokens > *now->kv_tokens) {
    remedy.why += fmt::format("; room for about {} tokens instead of {}", *after->kv_tokens, *now->kv_tokens);
    return true;
  }
  return remedy.saves_bytes || remedy.likely_alone || s.message() || s.likely_after({});
}

void offer_gain(const CaseView& s, Remedy remedy, Findings& findings) {
  if (!tell_gain(s, remedy)) return findings.refuse(remedy.name, std::string(kNothingSaved));
  findings.offer(std::move(remedy));
}

void utilization(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  const KvAdvice advice = kv_advice(s);
  if (advice.direction == KvDirection::keep) {
    if (!advice.why.empty()) findings.refuse("gpu-memory-utilization", advice.why);
    return;
  }
  const std::string fraction = fmt::format("{:.2f}", advice.fraction);
  Remedy remedy = make_remedy(s, "gpu-memory-utilization", {{"fraction", fraction}},
                              {{"gpu_memory_utilization", fraction}}, advice.why);
  // The server fills this share of the device: raising it gives bytes to the cache, lowering it leaves them to the
  // rest.
  remedy.saves_bytes.reset();
  if (advice.direction == KvDirection::raise) {
    if (advice.bytes) remedy.why += fmt::format("; gives the cache {} more", figure(*advice.bytes));
    remedy.caveats.push_back("the opposite advice, lowering it, is for failures outside the KV cache");
  } else {
    remedy.saves_bytes = advice.bytes;
    remedy.fits_alone = false;  // enough for the failed request; later ones are unknown
    remedy.likely_alone = advice.bytes && s.figures().short_by && *advice.bytes >= *s.figures().short_by;
    remedy.caveats.push_back("the opposite advice, raising it, is for a KV cache that is too small");
  }
  findings.offer(std::move(remedy));
}

// Tokens that the estimate allows, minus its error, as a round number.
int64_t round_length(int64_t tokens) {
  const int64_t sure = static_cast<int64_t>(0.97 * static_cast<double>(tokens));
  const int64_t step = sure >= 8192 ? 1024 : 256;
  return sure / step * step;
}

// llama.cpp's context when none is stated.
constexpr int64_t kUsualContext = 4096;
bool takes_the_models_context(const CaseView& s, int64_t length) {
  return s.job().system == System::llama_server && !s.job().serving.max_model_len && length > 2 * kUsualContext;
}

// Without an estimate half of a very long context is still a guess.
constexpr int64_t kLongGuess = 16384;

constexpr std::string_view kNamesOfTheLength = "max_seq_len|max_model_len|context_length";

// A length that the post has, or a longer one, is not offered.
bool tried_as_short(const std::optional<int64_t>& posted, int64_t length, Findings& findings) {
  if (!posted || length < *posted) return false;
  findings.refuse("max-model-len", fmt::format("the log has {} tokens, which is no more", *posted));
  return true;
}

void max_model_len(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  const Message* message = s.message();
  const std::optional<Estimate>& estimate = s.incident().estimate;
  // The engine's first line has the length that it plans for, and people write what they have tried.
  const std::optional<int64_t> logged = posted_value(s.incident().log_text, kNamesOfTheLength);
  const std::optional<int64_t> given = s.job().serving.max_model_len ? s.job().serving.max_model_len : logged;
  int64_t length = given.value_or(s.shape() ? s.shape()->max_positions : 0);
  std::string why = "the cache must hold one request of full length";
  if (message && message->kv_tokens_available && *message->kv_tokens_available > 0) {
    length = *message->kv_tokens_available / 16 * 16;
    why = fmt::format("the cache has room for {} tokens", *message->kv_tokens_available);
  } else if (estimate && estimate->kv_tokens && *estimate->kv_tokens < length) {
    if (round_length(*estimate->kv_tokens) < 256)
      return findings.refuse("max-model-len", "the weights leave the KV cache no room at all");
    length = round_length(*estimate->kv_tokens);
    why = fmt::format("the cache has room for about {} tokens", *estimate->kv_tokens);
  } else if (!logged && takes_the_models_context(s, length)) {
    length = kUsualContext;
    why = "what a conversation needs, instead of all that the model was trained on";
  } else if (length > 0) {
    const int64_t now = length;
    length = std::max<int64_t>(2048, now / 2);
    if (!estimate) length = std::min(length, kLongGuess);
    for (int64_t candidate = now / 2; candidate >= 2048; candidate /= 2)
      if (s.enough_after({{"max_model_len", std::to_string(candidate)}})) {
        length = candidate;
        break;
      }
    if (length >= now) return findings.refuse("max-model-len", fmt::format("{} tokens are short already", now));
  }
  if (length > 0 && tried_as_short(logged, length, findings)) return;
  if (length <= 0) {
    const bool llama = s.job().system == System::llama_server;
    findings.offer(make_remedy(s, "max-model-len", {{"length", llama ? "2048" : "8192"}, {"input", "8191"}}, {}, why));
    return;
  }
  Remedy remedy =
      make_remedy(s, "max-model-len", {{"length", std::to_string(length)}, {"input", std::to_string(length - 1)}},
                  {{"max_model_len", std::to_string(length)}}, why);
  if (s.job().serving.max_model_len) remedy.extra_cost = 3;  // someone asked for that length
  if (remedy.saves_bytes && *remedy.saves_bytes <= 0) remedy.saves_bytes.reset();
  if (message && message->kv_tokens_available) {
    remedy.fits_alone = true;  // the message states it
    remedy.saves_bytes.reset();
  }
  findings.offer(std::move(remedy));
}

void max_sequences(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  const int64_t unstated = s.job().system == System::llama_server ? 1 : 256;
  const int64_t usual = job_defaults(s.job()).max_sequences.value.value_or(unstated);
  const int64_t now = s.job().serving.max_sequences.value_or(usual);
  if (now <= 8) return;
  const int64_t count = std::max<int64_t>(8, now / 4);
  offer_gain(
      s,
      make_remedy(s, "max-sequences", {{"count", std::to_string(count)}}, {{"max_sequences", std::to_string(count)}},
                  "the sampler's warm-up and the graphs are sized for this many requests"),
      findings);
}

// Tokens per prefill step: stated, or the default, which depends on the device's size.
int64_t prefill_tokens(const CaseView& s) {
  const bool sglang = s.job().system == System::sglang;
  if (const int64_t chunk = s.job().serving.prefill_chunk.value_or(0); sglang && chunk > 0) return chunk;
  if (!sglang && s.job().serving.max_batched_tokens) return *s.job().serving.max_batched_tokens;
  if (s.job().system == System::llama_server) return 512;
  constexpr int64_t kGiB = int64_t{1} << 30;
  const int64_t memory = s.gpu() ? s.gpu()->memory_bytes : 80 * kGiB;
  if (sglang) return memory < 35 * kGiB ? 2048 : memory < 60 * kGiB ? 4096 : 8192;
  return memory < 70 * kGiB ? 2048 : 8192;
}

void batched_tokens(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  const int64_t now = prefill_tokens(s), least = s.job().system == System::llama_server ? 128 : 2048;
  if (now <= least) return findings.refuse("batched-tokens", fmt::format("a step takes {} tokens already", now));
  const int64_t tokens = s.phase("prefill") && now > 2 * least ? 2 * least : least;
  const char* field = s.job().system == System::sglang ? "extras.chunked_prefill_size" : "max_batched_tokens";
  offer_gain(s,
             make_remedy(s, "batched-tokens", {{"tokens", std::to_string(tokens)}}, {{field, std::to_string(tokens)}},
                         "activations of one prefill step"),
             findings);
}

void kv_dtype(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  const std::string now = s.job().serving.kv_dtype.value_or("auto");
  if (now.find("8") != std::string::npos || now.find("q4") != std::string::npos)
    return findings.refuse("kv-dtype", fmt::format("keys and values are in {} already", now));
  const bool llama = s.job().system == System::llama_server;
  if (!llama && s.gpu() && s.gpu()->compute_capability > 0 && s.gpu()->compute_capability < 80)
    return findings.refuse("kv-dtype", fmt::format("{} has no fp8 kernels", s.gpu()->name));
  Remedy remedy =
      make_remedy(s, "kv-dtype", {}, {{"kv_dtype", llama ? "q8_0" : "fp8"}}, "keys and values take half the bytes");
  if (!llama) remedy.needs = "Ada or Hopper; on Ampere only some attention backends";
  offer_gain(s, std::move(remedy), findings);
}

void eager(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  if (s.job().serving.eager.value_or(!s.log_says("enforce_eager=true").empty()))
    return findings.refuse("eager", "no graphs are captured already");
  Remedy remedy = make_remedy(s, "eager", {}, {{"eager", "true"}}, "captured graphs keep pools of their own");
  if (s.phase("cudagraph_capture")) remedy.why = "it failed while graphs were captured";
  offer_gain(s, std::move(remedy), findings);
}

void tensor_parallel(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  const int64_t now = s.job().parallel.tensor.value_or(1);
  int64_t gpus = std::max<int64_t>(2, 2 * now);
  for (int64_t wider = gpus; wider <= 16; wider *= 2)
    if (s.enough_after({{"tensor_parallel", std::to_string(wider)}, {"gpus", std::to_string(wider)}})) {
      gpus = wider;
      break;
    }
  std::string split = "1";
  for (int64_t i = 1; i < gpus; ++i) split += ",1";
  Remedy remedy = make_remedy(s, "tensor-parallel", {{"gpus", std::to_string(gpus)}, {"split", split}},
                              {{"tensor_parallel", std::to_string(gpus)}, {"gpus", std::to_string(gpus)}},
                              fmt::format("weights and cache split over {} GPUs", gpus));
  if (remedy.saves_bytes && *remedy.saves_bytes <= 0) remedy.saves_bytes.reset();
  if (s.job().devices.gpus.value_or(1) >= gpus) remedy.effort = "flag";
  for (int64_t n = 2 * now; n < gpus; n *= 2) remedy.extra_cost += 4;
  findings.offer(std::move(remedy));
}

void offload(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  if (s.job().system == System::llama_server) {
    // 99 or more means all layers.
    const int64_t layers = s.shape() ? s.shape()->layers : 0, stated = s.job().serving.gpu_layers.value_or(99);
    const int64_t now = layers > 0 ? std::min(stated, layers + 1) : stated < 99 ? stated : 0;
    int64_t chosen = now > 0 ? now / 2 : 0;
    for (int64_t n = now - 1; n > 0; --n)
      if (s.enough_after({{"gpu_layers", std::to_string(n)}})) {
        chosen = n;
        break;
      }
    Changes changes;
    if (now > 0) changes.emplace_back("gpu_layers", std::to_string(chosen));
    findings.offer(make_remedy(s, "gpu-layers", {{"layers", now > 0 ? std::to_string(chosen) : "<half of the layers>"}},
                               std::move(changes), "the other layers run on the CPU"));
    return;
  }
  int64_t gib = 8;
  for (int64_t enough = 1; enough <= 512; ++enough)
    if (s.enough_after({{"cpu_offload_bytes", std::to_string(enough << 30)}})) {
      gib = enough;
      break;
    }
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
