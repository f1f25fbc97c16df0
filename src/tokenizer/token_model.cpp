#include "tokenizer/token_model.h"

#include "base/error.h"
#include "tokenizer/bpe.h"
#include "tokenizer/unigram.h"
#include "tokenizer/word_piece.h"

namespace headroom {

std::unique_ptr<const TokenModel> TokenModel::read(const Component& model, const TokenizerJson& file, bool bytes) {
  switch (file.kind) {
    case TokenModelKind::bpe:
      return std::make_unique<Bpe>(model, file, bytes);
    case TokenModelKind::word_piece:
      return std::make_unique<WordPiece>(model, file);
    case TokenModelKind::unigram:
      return std::make_unique<Unigram>(model, file);
  }
  model.refuse("is of an unknown kind");
}

}  // namespace headroom
