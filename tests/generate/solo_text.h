// The text that a request must give, whatever else runs; and a listener that compares.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "generate/log_probabilities.h"
#include "generate/scheduler.h"
#include "generate/token_drawer.h"
#include "history_runner.h"

namespace headroom {

// Records its tokens.
struct HeardText : SequenceListener {
  std::vector<SequenceToken> prompt, tokens;
  std::optional<SequenceEnd> end;
  int64_t drawn = -1, cached = -1, ends = 0;
  std::vector<float> embedding;
  std::string error;
  size_t most = SIZE_MAX;  // ends the text after this many

  void on_prompt(std::vector<SequenceToken> scored) override {
    EXPECT_TRUE(prompt.empty() && tokens.empty());
    prompt = std::move(scored);
  }
  void on_embedding(std::span<const float> state) override { embedding.assign(state.begin(), state.end()); }
  bool on_token(const SequenceToken& token) override {
    EXPECT_FALSE(end);
    tokens.push_back(token);
    return tokens.size() < most;
  }
  void on_end(SequenceEnd how, int64_t count, int64_t from_index, const std::string& what) override {
    end = how, drawn = count, cached = from_index, error = what;
    ++ends;
  }
  std::vector<int32_t> ids() const {
    std::vector<int32_t> all;
    for (const SequenceToken& token : tokens) all.push_back(token.id);
    return all;
  }
};

// The tokens that a request gets with HistoryRunner's hashes, alone and without a scheduler; without a grammar.
inline std::vector<int32_t> solo_ids(const SequenceRequest& request, int64_t vocab) {
  TokenDrawer drawer(vocab);
  std::vector<int32_t> tokens = request.prompt;
  for (int64_t n = 0; n < request.max_tokens; ++n) {
    const std::vector<float> logits = history_logits(tokens, vocab);
    const int32_t id = drawer.draw(request.sampling, logits, tokens, request.prompt.size(), nullptr);
    if (std::ranges::find(request.stop_ids, id) != request.stop_ids.end()) break;
    tokens.push_back(id);
  }
  return {tokens.begin() + static_cast<std::ptrdiff_t>(request.prompt.size()), tokens.end()};
}

inline bool same_token(const SequenceToken& a, const SequenceToken& b) {
  return a.id == b.id && a.logprob == b.logprob &&
         std::ranges::equal(a.best, b.best, [](const RankedToken& x, const RankedToken& y) {
           return x.id == y.id && x.logprob == y.logprob;
         });
}

}  // namespace headroom
