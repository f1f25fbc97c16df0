// A set of Unicode code points, surrogates left out.
#pragma once

#include <cstdint>
#include <vector>

namespace headroom {

struct CodePointRange {
  char32_t first;
  char32_t last;
  friend auto operator<=>(const CodePointRange&, const CodePointRange&) = default;
};

class CodePointSet {
 public:
  static constexpr char32_t kLast = 0x10FFFF;

  CodePointSet() = default;
  explicit CodePointSet(char32_t code) { add(code, code); }
  CodePointSet(char32_t first, char32_t last) { add(first, last); }

  void add(char32_t first, char32_t last);
  void add(char32_t code) { add(code, code); }
  void add(const CodePointSet& other);
  // All code points that are not in the set.
  CodePointSet complement() const;
  CodePointSet without(const CodePointSet& other) const;
  bool has(char32_t code) const;
  bool empty() const { return ranges_.empty(); }
  bool is_ascii() const { return ranges_.empty() || ranges_.back().last < 0x80; }
  // In order and not adjacent.
  const std::vector<CodePointRange>& ranges() const { return ranges_; }
  friend auto operator<=>(const CodePointSet&, const CodePointSet&) = default;

 private:
  void add_raw(char32_t first, char32_t last);
  std::vector<CodePointRange> ranges_;
};

}  // namespace headroom
