#include "tokenizer/pre_tokenizer.h"

#include "base/error.h"
#include "tokenizer/pre_tokenizer_steps.h"
#include "tokenizer/unicode.h"

namespace headroom {
namespace {

constexpr int kMaxDepth = 8;
constexpr size_t kMaxSteps = 32;
constexpr int64_t kMostGrowth = 4096;

// Passes the pieces of one step to the next.
class ChainSink final : public WordSink {
 public:
  using Steps = std::vector<std::unique_ptr<PreTokenizerStep>>;
  ChainSink(const Steps& steps, size_t next, WordSink& last) : steps_(steps), next_(next), last_(last) {}

  void word(PreTokenizerInput piece) override {
    if (next_ > 0 && piece.continued > 0 && piece.continued != PreTokenizerInput::kWithinWord) --piece.continued;
    if (next_ == steps_.size()) {
      last_.word(piece);
      return;
    }
    ChainSink after(steps_, next_ + 1, last_);
    steps_[next_]->split(piece, after);
  }

 private:
  const Steps& steps_;
  size_t next_;
  WordSink& last_;
};

std::unique_ptr<PreTokenizerStep> read_split(const Component& component) {
  const Component pattern = component.member("pattern");
  Pattern compiled = pattern.has("String") ? Pattern::literal(pattern.text("String"), pattern.place())
                                           : Pattern::compile(pattern.text("Regex"), pattern.place());
  component.member("behavior");
  return std::make_unique<SplitStep>(std::move(compiled), read_split_behavior(component, SplitBehavior::isolated),
                                     component.flag("invert", false));
}

std::unique_ptr<PreTokenizerStep> read_metaspace(const Component& component) {
  return std::make_unique<MetaspaceStep>(component.character("replacement"), read_metaspace_prepend(component),
                                         component.flag("split", true));
}

}  // namespace

PreTokenizer PreTokenizer::read(const Component& component) {
  PreTokenizer result;
  result.add(component, 0);
  const bool ends_in_bytes =
      !result.steps_.empty() && dynamic_cast<const ByteSymbolsStep*>(result.steps_.back().get()) != nullptr;
  bool spelled_before = false;
  for (size_t i = 0; i + 1 < result.steps_.size(); ++i)
    spelled_before = spelled_before || dynamic_cast<const ByteSymbolsStep*>(result.steps_[i].get()) != nullptr;
  if (ends_in_bytes && !spelled_before) {
    result.steps_.pop_back();
    result.gives_bytes_ = true;
  }
  if (result.growth() > kMostGrowth) component.refuse("may make a text thousands of times longer");
  return result;
}

void PreTokenizer::add(const Component& component, int depth) {
  if (depth > kMaxDepth || steps_.size() >= kMaxSteps) component.refuse("has too many steps");
  const std::string type = component.type();
  if (type == "Sequence") {
    for (const Component& step : component.list("pretokenizers")) add(step, depth + 1);
  } else if (type == "ByteLevel") {
    if (component.flag("add_prefix_space", true)) steps_.push_back(std::make_unique<PrefixSpaceStep>());
    if (component.flag("use_regex", true))
      steps_.push_back(std::make_unique<SplitStep>(Pattern::compile(kGpt2Pattern, component.place()),
                                                   SplitBehavior::isolated, false));
    steps_.push_back(std::make_unique<ByteSymbolsStep>());
  } else if (type == "Split") {
    steps_.push_back(read_split(component));
  } else if (type == "Metaspace") {
    steps_.push_back(read_metaspace(component));
  } else if (type == "Digits") {
    const bool individual = component.flag("individual_digits", false);
    const SplitBehavior behavior = individual ? SplitBehavior::isolated : SplitBehavior::contiguous;
    steps_.push_back(std::make_unique<ClassStep>(unicode::is_digits_digit, behavior));
  } else if (type == "Punctuation") {
    const SplitBehavior behavior = read_split_behavior(component, SplitBehavior::isolated);
    steps_.push_back(std::make_unique<ClassStep>(unicode::is_punctuation_mark, behavior));
  } else if (type == "WhitespaceSplit") {
    steps_.push_back(std::make_unique<ClassStep>(unicode::is_space, SplitBehavior::removed));
  } else if (type == "BertPreTokenizer") {
    steps_.push_back(std::make_unique<ClassStep>(unicode::is_space, SplitBehavior::removed));
    steps_.push_back(std::make_unique<ClassStep>(unicode::is_punctuation_mark, SplitBehavior::isolated));
  } else if (type == "Whitespace") {
    steps_.push_back(std::make_unique<WordRunsStep>());
  } else if (type == "CharDelimiterSplit") {
    component.character("delimiter");
    Pattern delimiter = Pattern::literal(component.text("delimiter"), component.place());
    steps_.push_back(std::make_unique<SplitStep>(std::move(delimiter), SplitBehavior::removed, false));
  } else {
    component.refuse_type(
        "Sequence, ByteLevel, Split, Metaspace, Digits, Punctuation, Whitespace, WhitespaceSplit, BertPreTokenizer, "
        "CharDelimiterSplit");
  }
}

void PreTokenizer::split(PreTokenizerInput input, WordSink& sink) const {
  if (!input.text.empty()) ChainSink(steps_, 0, sink).word(input);
}

bool PreTokenizer::allows_cut(Boundary& boundary) const {
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (!steps_[i]->allows_cut(boundary)) return false;
    boundary.joined_steps = i + 1;
    if (boundary.split) return true;
  }
  return true;
}

void PreTokenizer::spell_bytes() {
  if (!gives_bytes_) return;
  steps_.push_back(std::make_unique<ByteSymbolsStep>());
  gives_bytes_ = false;
}

int64_t PreTokenizer::growth() const {
  int64_t growth = 1;
  for (const auto& step : steps_) growth = std::min(growth * step->growth(), kMostGrowth + 1);
  return growth;
}

int64_t PreTokenizer::memory_bytes() const {
  int64_t bytes = static_cast<int64_t>(steps_.capacity() * sizeof(steps_[0]));
  for (const auto& step : steps_) bytes += step->memory_bytes() + 64;
  return bytes;
}

}  // namespace headroom
