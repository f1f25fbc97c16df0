// The model of a tokenizer.json: words -> token ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "formats/tokenizer_json.h"
#include "tokenizer/boundary.h"
#include "tokenizer/component.h"
#include "tokenizer/workspace.h"

namespace headroom {

// A word, or a part of one that continues where an earlier call ended.
struct TokenModelWord {
  std::string_view text;
  bool continued = false;
};

// Immutable; thread-safe if each thread has its own workspace.
class TokenModel {
 public:
  virtual ~TokenModel() = default;

  // Reads the options of a model. `bytes`: words are bytes, which the vocabulary spells with byte symbols. `file` must
  // outlive the model. Throws Error(format) naming the place.
  static std::unique_ptr<const TokenModel> read(const Component& model, const TokenizerJson& file, bool bytes);

  // Appends the ids of a word. `score`: on entry that of the word so far, if `continued`; on return that of the word up
  // to its end. Models without scores do not use it. Throws Error(format) if the word contains something that no token
  // stands for.
  virtual void encode(TokenModelWord word, double& score, TokenizerWorkspace& workspace,
                      std::vector<int32_t>& ids) const = 0;

  // Whether a word may be cut at the boundary, given as the characters that encode() sees (bytes as their symbols).
  virtual bool allows_cut(const Boundary& boundary) const = 0;

  // Heap bytes held.
  virtual int64_t memory_bytes() const = 0;
};

}  // namespace headroom
