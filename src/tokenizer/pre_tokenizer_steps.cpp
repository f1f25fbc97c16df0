#include "tokenizer/pre_tokenizer_steps.h"

#include "tokenizer/byte_symbols.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

// Passes matches and the text between them to a sink, joined as the behaviour requires. add() takes them in order,
// without gaps.
class PieceJoiner {
 public:
  PieceJoiner(PreTokenizerInput input, SplitBehavior behavior, WordSink& next)
      : input_(input), behavior_(behavior), next_(next) {}

  void add(size_t begin, size_t end, bool match) {
    if (begin == end) return;
    switch (behavior_) {
      case SplitBehavior::isolated:
        emit(begin, end);
        return;
      case SplitBehavior::removed:
        if (!match) emit(begin, end);
        return;
      case SplitBehavior::contiguous:
        join(begin, end, match == last_match_);
        break;
      case SplitBehavior::merged_with_previous:
        join(begin, end, match && !last_match_);
        break;
      case SplitBehavior::merged_with_next:
        join(begin, end, !match && last_match_);
        break;
    }
    last_match_ = match;
  }

  void finish() {
    if (held_end_ > held_begin_) emit(held_begin_, held_end_);
    held_begin_ = held_end_;
  }

 private:
  // Holds a piece back, joined to the held one or as a new one.
  void join(size_t begin, size_t end, bool to_held) {
    if (!to_held || held_end_ == held_begin_) {
      finish();
      held_begin_ = begin;
    }
    held_end_ = end;
  }
  void emit(size_t begin, size_t end) { next_.word(input_.part(begin, end)); }

  PreTokenizerInput input_;
  SplitBehavior behavior_;
  WordSink& next_;
  size_t held_begin_ = 0;
  size_t held_end_ = 0;
  bool last_match_ = false;
};

// Whether a boundary may be cut, given whether each of its characters is in the class that matches; sets boundary.split
// if a piece always ends there.
bool class_allows_cut(Boundary& boundary, SplitBehavior behavior, bool left, bool right) {
  switch (behavior) {
    case SplitBehavior::isolated:
    case SplitBehavior::removed:
      boundary.split = left || right;
      return true;
    case SplitBehavior::contiguous:
      boundary.split = left != right;
      return !left || !right;
    case SplitBehavior::merged_with_previous:
    case SplitBehavior::merged_with_next:
      return !left && !right;
  }
  return false;
}

// The kinds of characters that the pre-tokenizer Whitespace distinguishes.
enum class RunKind { word, space, other };

RunKind run_kind(char32_t code) {
  if (unicode::is_space(code)) return RunKind::space;
  return unicode::is_added_token_word(code) ? RunKind::word : RunKind::other;
}

}  // namespace

SplitBehavior read_split_behavior(const Component& component, SplitBehavior otherwise) {
  if (!component.has("behavior")) return otherwise;
  const std::string name = component.text("behavior");
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  component.member("behavior")
      .refuse("is not one of Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

void SplitStep::split(PreTokenizerInput input, WordSink& next) const {
  PieceJoiner pieces(input, behavior_, next);
  size_t done = 0;
  while (const std::optional<PatternMatch> match = pattern_.find(input.text, done)) {
    pieces.add(done, match->begin, invert_);
    pieces.add(match->begin, match->end, !invert_);
    done = match->end;
  }
  pieces.add(done, input.text.size(), invert_);
  pieces.finish();
}

bool SplitStep::allows_cut(Boundary& boundary) const {
  if (!pattern_.keeps_apart(boundary.left, boundary.right)) return false;
  if (behavior_ == SplitBehavior::isolated || behavior_ == SplitBehavior::removed) {
    boundary.split = pattern_.always_matches(boundary.right);
    boundary.within = false;
    return true;
  }
  return !pattern_.mentions(boundary.left) && !pattern_.mentions(boundary.right);
}

void ClassStep::split(PreTokenizerInput input, WordSink& next) const {
  PieceJoiner pieces(input, behavior_, next);
  size_t done = 0;
  for (size_t at = 0; at < input.text.size();) {
    const Utf8Char c = decode_utf8(input.text, at);
    if (test_(c.code)) {
      pieces.add(done, at, false);
      pieces.add(at, at + c.bytes, true);
      done = at + c.bytes;
    }
    at += c.bytes;
  }
  pieces.add(done, input.text.size(), false);
  pieces.finish();
}

bool ClassStep::allows_cut(Boundary& boundary) const {
  return class_allows_cut(boundary, behavior_, test_(boundary.left), test_(boundary.right));
}

void WordRunsStep::split(PreTokenizerInput input, WordSink& next) const {
  size_t begin = 0;
  RunKind kind = RunKind::space;
  const auto end_run = [&](size_t end) {
    if (kind != RunKind::space && begin < end) next.word(input.part(begin, end));
    begin = end;
  };
  for (size_t at = 0; at < input.text.size();) {
    const Utf8Char c = decode_utf8(input.text, at);
    const RunKind next_kind = run_kind(c.code);
    if (next_kind != kind) end_run(at);
    kind = next_kind;
    at += c.bytes;
  }
  end_run(input.text.size());
}

bool WordRunsStep::allows_cut(Boundary& boundary) const {
  const RunKind left = run_kind(boundary.left), right = run_kind(boundary.right);
  boundary.split = left != right || left == RunKind::space;
  return true;
}

void PrefixSpaceStep::split(PreTokenizerInput input, WordSink& next) const {
  if (input.text.front() == ' ') {
    next.word(input);
    return;
  }
  const std::string prefixed = ' ' + std::string(input.text);
  next.word({prefixed, input.opens, input.continued});
}

void ByteSymbolsStep::split(PreTokenizerInput input, WordSink& next) const {
  std::string symbols;
  symbols.reserve(input.text.size() * 2);
  append_byte_symbols(input.text, symbols);
  next.word({symbols, input.opens, input.continued});
}

bool ByteSymbolsStep::allows_cut(Boundary& boundary) const {
  spell_boundary(boundary);
  return true;
}

MetaspaceStep::MetaspaceStep(char32_t replacement, Prepend prepend, bool split)
    : replacement_(replacement), prepend_(prepend), split_(split) {
  append_utf8(replacement, replacement_text_);
}

void MetaspaceStep::split(PreTokenizerInput input, WordSink& next) const {
  std::string text;
  const bool may_prepend = prepend_ == Prepend::always || (prepend_ == Prepend::first && input.opens);
  if (may_prepend && input.continued == 0 && input.text.front() != ' ' && !input.text.starts_with(replacement_text_))
    text = replacement_text_;
  for (const char c : input.text) {
    if (c == ' ')
      text += replacement_text_;
    else
      text += c;
  }
  if (!split_) {
    next.word({text, input.opens, input.continued});
    return;
  }
  PieceJoiner pieces({text, input.opens, input.continued}, SplitBehavior::merged_with_next, next);
  size_t done = 0;
  for (size_t at; (at = text.find(replacement_text_, done)) != std::string::npos;
       done = at + replacement_text_.size()) {
    pieces.add(done, at, false);
    pieces.add(at, at + replacement_text_.size(), true);
  }
  pieces.add(done, text.size(), false);
  pieces.finish();
}

// A piece ends before each replacement, also between two in a row.
bool MetaspaceStep::allows_cut(Boundary& boundary) const {
  if (boundary.left == ' ') boundary.left = replacement_;
  if (boundary.right == ' ') boundary.right = replacement_;
  if (boundary.right == replacement_) {
    boundary.split = split_;
    return true;
  }
  return (prepend_ != Prepend::always || boundary.within) && (!split_ || boundary.left != replacement_);
}

MetaspaceStep::Prepend read_metaspace_prepend(const Component& component) {
  if (component.has("prepend_scheme")) {
    const std::string scheme = component.text("prepend_scheme");
    if (scheme == "always") return MetaspaceStep::Prepend::always;
    if (scheme == "first") return MetaspaceStep::Prepend::first;
    if (scheme == "never") return MetaspaceStep::Prepend::never;
    component.member("prepend_scheme").refuse("is not one of always, first, never");
  }
  return component.flag("add_prefix_space", true) ? MetaspaceStep::Prepend::always : MetaspaceStep::Prepend::never;
}

}  // namespace headroom
