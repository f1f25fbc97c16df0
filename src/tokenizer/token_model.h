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

// A word, or the part of one that goes on where an earlier call ended.
struct TokenModelWord {
  std::string_view text;
  bool continued = false;
};

// Immutable; may be used from several threads, each with its own workspace.
class TokenModel {
 public:
  virtual ~TokenModel() = default;

  // Reads the options of a model. `bytes`: words are bytes, which the vocabulary spells by their symbols. `file` must
  // outlive the model. Throws Error(format) naming the place.
  static std::unique_ptr<const TokenModel> read(const Component& model, const TokenizerJson& file, bool bytes);

  // Appends the ids of a word. `score` is that of the word so far when it is continued, and becomes the one at its end;
  // models without scores leave it alone. Throws Error(format) when the word holds what no token stands for.
  virtual void encode(TokenModelWord word, double& score, TokenizerWorkspace& workspace,
                      std::vector<int32_t>& ids) const = 0;

  // Whether a word may be cut at the boundary (given in the characters that encode() sees; bytes as their symbols).
  virtual bool allows_cut(const Boundary& boundary) const = 0;

  // Heap bytes held.
  virtual int64_t memory_bytes() const = 0;
};

}  // namespace headroom
