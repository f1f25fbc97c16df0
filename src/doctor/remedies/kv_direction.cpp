#include "doctor/remedies/kv_direction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "doctor/config/defaults.h"
#include "doctor/remedies/figures.h"
#include "doctor/remedies/posted_numbers.h"

namespace headroom::doctor {
namespace {

constexpr double kHighest = 0.95;
constexpr std::string_view kNamesOfTheShare = "gpu_memory_utilization|mem_fraction_static|cuda_memory_fraction";

double current_fraction(const CaseView& s) {
  if (s.job().serving.gpu_memory_utilization) return *s.job().serving.gpu_memory_utilization;
  if (s.message() && s.message()->gpu_memory_utilization) return *s.message()->gpu_memory_utilization;
  // vLLM's messages come mostly from releases before the default became 0.92.
  if (s.message() && s.job().system == System::vllm) return 0.9;
  return job_defaults(s.job()).gpu_memory_utilization.value.value_or(0.88);
}

// A share that failed is not offered again: to lower it, the lowest that the log names counts, to raise it the
// highest.
double lowest_fraction(const CaseView& s, double now) {
  for (const double share : posted_shares(s.incident().log_text, kNamesOfTheShare)) now = std::min(now, share);
  return now;
}
double highest_fraction(const CaseView& s, double now) {
  for (const double share : posted_shares(s.incident().log_text, kNamesOfTheShare)) now = std::max(now, share);
  return now;
}

bool says(const Message& message, std::string_view words) { return message.text.find(words) != std::string::npos; }

bool cache_too_small(const Message& message) {
  if (message.hinted("raise_not_lower")) return true;
  if (message.kv_bytes_wanted && message.kv_bytes_available && *message.kv_bytes_wanted > *message.kv_bytes_available)
    return true;
  if (message.kv_tokens_wanted && message.kv_tokens_available &&
      *message.kv_tokens_wanted > *message.kv_tokens_available)
    return true;
  return says(message, "No available memory for the cache blocks") || says(message, "increasing `gpu_memory_util") ||
         says(message, "increase --mem-fraction-static") || says(message, "increasing gpu_memory_utilization");
}

// Messages that ask for fewer slots, or fewer tokens of a prefill; the device's share does not matter then.
bool asks_for_fewer(const Message& message) {
  return says(message, "smaller number for `--max-running-requests`") ||
         says(message, "decrease `--max-batch-prefill-tokens`") || says(message, "decrease `--max-batch-total-tokens`");
}

// Another process, or another part of this one, holds memory that the fraction asks for.
bool device_taken(const Message& message) {
  return says(message, "less than desired GPU memory utilization") || message.hinted("two_servers_one_gpu");
}

struct Raise {
  double fraction = 0;  // 0: none
  bool enough = false;
};

// The smallest share of the device with which the job fits by the estimate, else the largest possible.
Raise raise_by_estimate(const CaseView& s, double now) {
  Raise raise;
  for (int percent = static_cast<int>(std::floor(100 * now + 1e-6)) + 1; percent <= 95; ++percent) {
    const Changes changes{{"gpu_memory_utilization", fmt::format("{:.2f}", percent / 100.0)}};
    const std::optional<int64_t> need = s.need_after(changes);
    if (!need || !s.balance().limit || !fits(*need, *s.balance().limit)) break;
    raise = {percent / 100.0, s.enough_after(changes)};
    if (raise.enough) break;
  }
  return raise;
}

int64_t largest_device() {
  int64_t largest = 0;
  for (const Gpu& gpu : known_gpus()) largest = std::max(largest, gpu.memory_bytes);
  return largest;
}

KvAdvice raised(const CaseView& s, double now) {
  KvAdvice advice;
  const Message* message = s.message();
  const double device = static_cast<double>(s.balance().limit.value_or(0));
  double wanted = now + 0.05;
  if (message && message->kv_bytes_wanted && message->kv_bytes_available && device > 0)
    wanted = now + static_cast<double>(*message->kv_bytes_wanted - *message->kv_bytes_available) / device + 0.01;
  if (now >= kHighest - 1e-9) {
    advice.why = fmt::format("the share is {:.2f} already", now);
    return advice;
  }
  advice.direction = KvDirection::raise;
  bool enough = wanted <= kHighest + 1e-9;
  // If the device's size is unknown, assume the largest one.
  if (message && message->kv_bytes_wanted && message->kv_bytes_available && device <= 0)
    enough = static_cast<double>(*message->kv_bytes_wanted - *message->kv_bytes_available) <=
             (kHighest - now) * static_cast<double>(largest_device());
  if (!message && s.incident().estimate) {
    const Raise raise = raise_by_estimate(s, now);
    if (raise.fraction <= 0) return {};
    wanted = raise.fraction;
    enough = raise.enough;
  }
  advice.fraction = std::min(kHighest, std::ceil(wanted * 100 - 1e-6) / 100);
  if (device > 0) advice.bytes = static_cast<int64_t>((advice.fraction - now) * device);
  advice.why =
      fmt::format("the KV cache is what is left of {:.0f} % of the device after weights and activations", 100 * now);
  if (!enough) advice.why += fmt::format("; {:.2f} alone is not enough", advice.fraction);
  return advice;
}

// The frames or the lines before the message show a stage at which the cache is not what is allocated.
bool failed_outside(const CaseView& s) {
  for (const std::string_view stage : {"cudagraph_capture", "prefill", "serve", "forward", "compile", "comm_init"})
    if (s.phase(stage)) return true;
  return false;
}

KvAdvice lowered(const CaseView& s, double now) {
  KvAdvice advice;
  const MessageFigures& f = s.figures();
  const double device = static_cast<double>(s.balance().limit.value_or(0));
  double wanted = now - 0.1;
  if (f.capacity && f.free && s.message() && device_taken(*s.message()))
    wanted = static_cast<double>(*f.free) / static_cast<double>(*f.capacity);
  else if (f.short_by && f.capacity)
    wanted = now - static_cast<double>(*f.short_by) / static_cast<double>(*f.capacity) - 0.02;
  advice.fraction = std::clamp(std::floor(wanted * 100 + 1e-6) / 100, 0.1, 0.94);
  constexpr double kBesideTheWeights = 1.2;  // activations, and a cache
  const int64_t weights = s.term("weights");
  if (weights > 0 && advice.fraction * device < kBesideTheWeights * static_cast<double>(weights)) {
    advice.why = fmt::format("the weights alone take {:.2f} of the device", static_cast<double>(weights) / device);
    return advice;
  }
  if (advice.fraction >= now - 1e-9) {
    advice.why = fmt::format("the share is {:.2f} already", now);
    return advice;
  }
  advice.direction = KvDirection::lower;
  if (device > 0) advice.bytes = static_cast<int64_t>(std::max(0.0, now - advice.fraction) * device);
  advice.why = failed_outside(s)
                   ? "it failed outside the KV cache, which had taken its share first"
                   : "the server takes its share of the device first: a smaller one leaves more to the rest";
  return advice;
}

}  // namespace

KvAdvice kv_advice(const CaseView& s) {
  if (s.job().system != System::vllm && s.job().system != System::sglang && s.job().system != System::tgi) return {};
  const double now = current_fraction(s);
  if (const Message* message = s.message()) {
    if (asks_for_fewer(*message)) return {};
    if (cache_too_small(*message)) return raised(s, highest_fraction(s, now));
    if (device_taken(*message)) return lowered(s, lowest_fraction(s, now));
    // SGLang at start has no room for the pool: more. At run time prefill and decoding need what the pool leaves: less.
    if (s.job().system == System::sglang && message->phase == "serve_init" && !message->requested_bytes)
      return raised(s, highest_fraction(s, now));
    return lowered(s, lowest_fraction(s, now));
  }
  const std::optional<Estimate>& estimate = s.incident().estimate;
  const int64_t length = s.job().serving.max_model_len.value_or(s.shape() ? s.shape()->max_positions : 0);
  if (estimate && estimate->kv_tokens && *estimate->kv_tokens < length) return raised(s, highest_fraction(s, now));
  return {};
}

}  // namespace headroom::doctor
