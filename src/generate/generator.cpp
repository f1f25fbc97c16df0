#include "generate/generator.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "generate/allowed_tokens.h"

namespace headroom {
namespace {

// Runs one program on tokens that continue the cache; returns the last one's logits, in `buffer` if the host cannot
// access the arena.
std::span<const float> advance(Executor& executor, std::string_view program, std::string_view ids_name,
                               std::span<const int32_t> tokens, int64_t offset, std::span<float> buffer) {
  executor.write(executor.tensor(ids_name), [&](int64_t first, std::span<std::byte> piece) {
    const std::span<int32_t> ids(reinterpret_cast<int32_t*>(piece.data()), piece.size() / sizeof(int32_t));
    for (size_t i = 0; i < ids.size(); ++i) {
      const size_t at = static_cast<size_t>(first) + i;
      ids[i] = at < tokens.size() ? tokens[at] : 0;
    }
  });
  const auto number = [&](std::string_view name, int64_t value) {
    const int32_t narrow = static_cast<int32_t>(value);
    executor.put<int32_t>(executor.tensor(name), {&narrow, 1});
  };
  number("offset", offset);
  number("last", static_cast<int64_t>(tokens.size()) - 1);
  executor.run(program, {});
  return executor.get<float>(executor.result(program, 0), buffer);
}

}  // namespace

std::vector<int64_t> prompt_chunks(int64_t prompt) {
  constexpr int64_t kSizes[] = {512, 256, 128, 64, 32, 16, 8, 4, 1};
  std::vector<int64_t> chunks;
  for (int64_t size : kSizes)
    if (size < 2 * prompt || size == 1) chunks.push_back(size);
  return chunks;
}

int64_t count_new_tokens(std::optional<int64_t> asked, int64_t prompt, int64_t positions) {
  const int64_t left = positions - prompt;
  if (asked && *asked < 1)
    throw Error(ErrorKind::usage, fmt::format("--max-new-tokens {} is out of range", *asked), "give 1 or more");
  if (left < 1)
    throw Error(
        ErrorKind::usage,
        fmt::format("the prompt has {} tokens, which leaves none of the model's {} positions", prompt, positions),
        "shorten the prompt");
  if (asked && *asked > left)
    throw Error(ErrorKind::usage,
                fmt::format("{} prompt tokens and --max-new-tokens {} exceed the model's {} positions", prompt, *asked,
                            positions),
                fmt::format("give --max-new-tokens {} or less, or shorten the prompt", left));
  return asked.value_or(std::min(kDefaultNewTokens, left));
}

std::vector<int32_t> generate_tokens(Executor& executor, std::span<const int32_t> prompt,
                                     const GenerateOptions& options, const std::function<bool(int32_t)>& on_token,
                                     GenerateTimes* times) {
  HR_CHECK(!prompt.empty(), "an empty prompt");
  std::vector<int32_t> out;
  out.reserve(static_cast<size_t>(options.max_new_tokens));
  const auto begin = std::chrono::steady_clock::now();
  const auto since = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  const std::string prompt_ids = options.prefill + "_ids";
  const int64_t chunk = executor.tensor(prompt_ids).count();
  int64_t filled = 0;
  const TensorView result = executor.result("decode", 0);
  std::vector<float> buffer(executor.host_sees(result) ? 0 : static_cast<size_t>(result.count()));
  std::span<const float> logits;
  while (filled < static_cast<int64_t>(prompt.size())) {
    const int64_t count = std::min<int64_t>(chunk, static_cast<int64_t>(prompt.size()) - filled);
    logits = advance(executor, options.prefill, prompt_ids,
                     prompt.subspan(static_cast<size_t>(filled), static_cast<size_t>(count)), filled, buffer);
    filled += count;
  }
  const double prompt_seconds = since();
  int64_t decoded = 0;
  Sampler sampler(options.sampling, static_cast<int64_t>(logits.size()));
  AllowedTokens allowed(options.grammar, static_cast<int64_t>(logits.size()));
  for (int64_t n = 0; n < options.max_new_tokens && !allowed.ended(); ++n) {
    const int32_t token = allowed.pick(sampler, logits, filled);
    if (std::find(options.stop_ids.begin(), options.stop_ids.end(), token) != options.stop_ids.end()) break;
    out.push_back(token);
    allowed.accept(token);
    if (!on_token(token) || n + 1 == options.max_new_tokens || allowed.ended()) break;
    logits = advance(executor, "decode", "decode_ids", {&token, 1}, filled++, buffer);
    ++decoded;
  }
  if (times) *times = {static_cast<int64_t>(prompt.size()), decoded, prompt_seconds, since() - prompt_seconds};
  return out;
}

}  // namespace headroom
