// Two neighbouring characters between which a text might be cut, followed through the stages of a tokenizer.
#pragma once

namespace headroom {

// Each stage answers whether it treats the two sides alike together and apart, and turns the characters into those that
// the next stage sees.
struct Boundary {
  char32_t left;
  char32_t right;
  bool split = false;  // a stage always splits here: the stages after it see the two sides apart anyway
};

// Replaces the characters by the symbols of the two bytes that meet there.
void spell_boundary(Boundary& boundary);

}  // namespace headroom
