#include "tokenizer/decoder.h"

#include <limits>
#include <utility>

#include "base/error.h"
#include "tokenizer/decoder_stages.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pre_tokenizer_steps.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

constexpr int kMaxDepth = 8;
constexpr size_t kMaxSteps = 32;
constexpr size_t kMaxContentBytes = 64;

using Stages = std::vector<std::unique_ptr<DecoderStage>>;

// Passes the output of a stage to the stages from `next` on, and appends that of the last one to a text.
class RestOfChain final : public DecoderOutput {
 public:
  RestOfChain(const Stages& stages, size_t next, std::string& text) : stages_(stages), next_(next), text_(text) {}
  void token(std::string_view token) override {
    if (next_ == stages_.size()) {
      text_ += token;
      return;
    }
    RestOfChain rest(stages_, next_ + 1, text_);
    stages_[next_]->take(token, rest);
  }

 private:
  const Stages& stages_;
  size_t next_;
  std::string& text_;
};

// Passes a token on, or a piece of one.
class FuseStage final : public DecoderStage {
 public:
  void take(std::string_view token, DecoderOutput& out) override { out.token(token); }
  void finish(DecoderOutput&) override {}
};

std::string unspell_spaces(std::string_view token, char32_t replacement, bool drop) {
  std::string text;
  for (size_t at = 0; at < token.size();) {
    const Utf8Char next = decode_utf8(token, at);
    if (next.code != replacement)
      text.append(token.substr(at, next.bytes));
    else if (!drop)
      text.push_back(' ');
    at += next.bytes;
  }
  return text;
}

}  // namespace

DecoderPlan DecoderPlan::read(const Component& component) {
  DecoderPlan plan;
  plan.has_decoder_ = true;
  plan.add(component, 0);
  return plan;
}

void DecoderPlan::add(const Component& component, int depth) {
  if (depth > kMaxDepth || steps_.size() == kMaxSteps) component.refuse("has too many steps");
  const std::string type = component.type();
  Step step{};
  if (type == "Sequence") {
    for (const Component& part : component.list("decoders")) add(part, depth + 1);
    return;
  }
  if (type == "ByteLevel") {
    step.kind = Kind::byte_level;
  } else if (type == "ByteFallback") {
    step.kind = Kind::byte_fallback;
  } else if (type == "Fuse") {
    step.kind = Kind::fuse;
  } else if (type == "Replace") {
    step.kind = Kind::replace;
    step.content = component.text("content");
    const Component pattern = component.member("pattern");
    if (pattern.has("String"))
      step.replaced = pattern.text("String");
    else
      step.pattern = std::make_shared<const Pattern>(Pattern::compile(pattern.text("Regex"), pattern.place()));
    if (!step.pattern && step.replaced.empty()) pattern.refuse("is empty");
    if (step.content.size() > kMaxContentBytes)
      component.refuse(fmt::format("content of more than {} bytes", kMaxContentBytes));
  } else if (type == "Strip") {
    step.kind = Kind::strip;
    append_utf8(component.character("content"), step.content);
    step.start = component.number("start");
    step.stop = component.number("stop");
  } else if (type == "Metaspace") {
    step.kind = Kind::metaspace;
    step.character = component.character("replacement");
    step.drops_first = read_metaspace_prepend(component) != MetaspaceStep::Prepend::never;
  } else if (type == "WordPiece") {
    step.kind = Kind::word_piece;
    step.content = component.has("prefix") ? component.text("prefix") : "##";
    step.cleans_up = component.flag("cleanup", true);
  } else {
    component.refuse_type("Sequence, ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace, WordPiece");
  }
  steps_.push_back(std::move(step));
}

// `pieces`: the stage receives the pieces of a single token.
std::unique_ptr<DecoderStage> DecoderPlan::make_stage(const Step& step, bool pieces) {
  std::unique_ptr<DecoderStage> stage;
  switch (step.kind) {
    case Kind::fuse:
      return std::make_unique<FuseStage>();
    case Kind::metaspace:
      stage = std::make_unique<MapStage>(
          [character = step.character, drops_first = step.drops_first](std::string_view token, bool first) {
            return unspell_spaces(token, character, first && drops_first);
          });
      break;
    case Kind::strip:
      if (pieces) return std::make_unique<StripPiecesStage>(step.content, step.start, step.stop);
      return std::make_unique<MapStage>(
          [step](std::string_view token, bool) { return strip_token(token, step.content, step.start, step.stop); });
    case Kind::replace:
      stage = std::make_unique<MapStage>([step](std::string_view token, bool) {
        std::string text;
        if (step.pattern)
          replace_pattern(token, *step.pattern, step.content, text);
        else
          replace_literal(token, step.replaced, step.content, text);
        return text;
      });
      break;
    case Kind::word_piece:
      stage = std::make_unique<MapStage>(
          [prefix = step.content, cleans_up = step.cleans_up](std::string_view token, bool first) {
            return join_word_piece(token, prefix, first, cleans_up);
          });
      break;
    case Kind::byte_level:
      stage = std::make_unique<ByteLevelStage>();
      break;
    case Kind::byte_fallback:
      stage = std::make_unique<ByteFallbackStage>();
      break;
  }
  if (pieces) return std::make_unique<WholeStage>(std::move(stage));
  return stage;
}

std::vector<std::unique_ptr<DecoderStage>> DecoderPlan::make_stages() const {
  std::vector<std::unique_ptr<DecoderStage>> stages;
  if (!has_decoder_) stages.push_back(std::make_unique<JoinStage>());
  bool pieces = false;
  for (const Step& step : steps_) {
    stages.push_back(make_stage(step, pieces));
    pieces = pieces || step.kind == Kind::fuse || step.kind == Kind::byte_level;
  }
  return stages;
}

int64_t DecoderPlan::memory_bytes() const {
  int64_t bytes = static_cast<int64_t>(steps_.capacity() * sizeof(Step));
  for (const Step& step : steps_)
    if (step.pattern) bytes += step.pattern->memory_bytes();
  return bytes;
}

std::optional<DecoderPlan::LeadingSpaces> DecoderPlan::leading_spaces() const {
  LeadingSpaces leading;
  bool pieces = false, bytes = false;  // what earlier steps made of the tokens
  if (!has_decoder_) return std::nullopt;
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Kind::byte_level:
        if (pieces) return std::nullopt;
        pieces = true;
        break;
      case Kind::fuse:
        pieces = true;
        break;
      case Kind::byte_fallback:
        if (pieces) return std::nullopt;
        bytes = true;
        break;
      case Kind::replace:
        if (pieces || bytes) return std::nullopt;
        break;
      case Kind::metaspace:
        if (pieces || bytes) return std::nullopt;
        if (step.drops_first) leading = {std::numeric_limits<int32_t>::max(), true};
        break;
      case Kind::strip:
        if (!pieces || step.stop > 0 || step.content != " " || leading.count > 0) return std::nullopt;
        leading = {step.start, false};
        break;
      case Kind::word_piece:
        return std::nullopt;
    }
  }
  return leading;
}

std::string DecoderPlan::bytes_of(std::string_view token) const {
  std::string text(token);
  for (const Step& step : steps_) {
    if (step.kind == Kind::fuse || step.kind == Kind::strip) continue;
    if (step.kind == Kind::byte_level) return bytes_of_token(text);
    if (step.kind == Kind::byte_fallback) {
      if (const int byte = fallback_byte(text); byte >= 0) return std::string(1, static_cast<char>(byte));
    } else if (step.kind == Kind::metaspace) {
      text = unspell_spaces(text, step.character, false);
    } else {
      std::string replaced;
      if (step.pattern)
        replace_pattern(text, *step.pattern, step.content, replaced);
      else
        replace_literal(text, step.replaced, step.content, replaced);
      text = std::move(replaced);
    }
  }
  return text;
}

void DecoderChain::take(std::string_view token, std::string& out) { RestOfChain(stages_, 0, out).token(token); }

void DecoderChain::finish(std::string& out) {
  for (size_t at = 0; at < stages_.size(); ++at) {
    RestOfChain rest(stages_, at + 1, out);
    stages_[at]->finish(rest);
  }
}

}  // namespace headroom
