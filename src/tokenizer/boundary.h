// Two neighbouring characters between which a text might be cut, followed through the stages of a tokenizer.
#pragma once

#include <array>
#include <cstddef>

namespace headroom {

// Each stage says whether it treats the two sides alike together and apart, and replaces the characters by those that
// the next stage sees.
struct Boundary {
  char32_t left;
  char32_t right;
  bool split = false;       // a stage always splits here: later stages see the two sides separately anyway
  bool within = true;       // no stage splits here: both sides are in one word
  size_t joined_steps = 0;  // with `split`: how many steps of the pre-tokenizer see the two sides together
};

// What a boundary may become, if that depends on the characters around it.
class BoundaryChoices {
 public:
  BoundaryChoices() = default;
  explicit BoundaryChoices(const Boundary& only) { add(only.left, only.right); }

  void add(char32_t left, char32_t right) {
    if (count_ < list_.size()) list_[count_] = Boundary{left, right};
    ++count_;
  }
  // Whether there were more than fit.
  bool overflows() const { return count_ > list_.size(); }
  const Boundary* begin() const { return list_.data(); }
  const Boundary* end() const { return list_.data() + (overflows() ? list_.size() : count_); }

 private:
  std::array<Boundary, 8> list_{};
  size_t count_ = 0;
};

// What cutting a text between two characters would do.
enum class CutKind {
  changes_ids,    // or may change them
  between_words,  // a word ends there in any case
  within_word,    // never the end of a word, and the model keeps the two sides apart
  either,         // one of the two above
};
struct Cut {
  CutKind kind = CutKind::changes_ids;
  size_t joined_steps = 0;  // between words: how many steps of the pre-tokenizer see the two sides together
  bool operator==(const Cut&) const = default;
};

// Replaces the characters by the byte symbols of the two bytes that meet at the boundary.
void spell_boundary(Boundary& boundary);

}  // namespace headroom
